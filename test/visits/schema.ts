/** What a visit is, and the owner whom it is for: as different from a pet as can be. */
import { z } from 'zod'
import { orderBy } from '../../db/order.ts'
import { dateTimeInput, dateTimeOutput } from '../../src/procedure/dates.ts'
import { decimalInput, decimalOutput } from '../../src/procedure/decimal.ts'
import { int64Input, int64Output } from '../../src/procedure/int64.ts'
import { pagingInputs } from '../../src/procedure/paging.ts'
import { quantityOutput } from '../../src/procedure/quantity.ts'
import { textInput, textOutput } from '../../src/procedure/text.ts'

const notAnObject = { error: 'must be an object' }
const money = { precision: 10, scale: 2 }

const ownerId = int64Input({ description: 'Identifier of the owner.', examples: [3] })
const visitId = int64Input({ description: 'Identifier of the visit.', examples: [7] })

export const NewOwner = z
  .object({ name: textInput({ description: "The owner's name.", examples: ['Ada'] }) }, notAnObject)
  .meta({ id: 'NewOwner', description: 'An owner to add.' })

export const Owner = z
  .object({
    id: int64Output({ description: 'Identifies the owner.', examples: [3] }),
    name: textOutput({ description: "The owner's name.", examples: ['Ada'] }),
    spent: decimalOutput({ description: 'What closed visits cost, in euros.' }, money),
  })
  .meta({ id: 'Owner', description: 'Who comes with an animal.' })

export const OneOwner = z.object({ ownerId }, notAnObject)

const urgent = z.boolean({ error: 'must be true or false' })
const price = decimalInput({ description: 'In euros.', examples: ['2.50'] }, money)
const note = textInput({ description: 'What is to be known; null where there is nothing.' })

export const NewVisit = z
  .object(
    {
      ownerId,
      reference: textInput({ description: 'Names the visit; no other has it.' }, 40),
      price,
      at: dateTimeInput({ description: 'When it is.', examples: ['2026-01-02T03:04:05Z'] }),
      urgent: urgent.default(false).meta({ description: 'Whether it comes before others.' }),
      note: note.nullable().default(null),
    },
    notAnObject,
  )
  .meta({ id: 'NewVisit', description: 'A visit to add.' })

export const Visit = z
  .object({
    id: int64Output({ description: 'Identifies the visit.', examples: [7] }),
    reference: textOutput({}, 40),
    price: decimalOutput({}, money),
    at: dateTimeOutput(),
    urgent: z.boolean(),
    note: textOutput({}).nullable(),
    createdAt: dateTimeOutput({ description: 'When the visit was added.' }),
    closedAt: dateTimeOutput().nullable(),
  })
  .meta({ id: 'Visit', description: 'A visit.' })

export const Visits = z.array(Visit).meta({ id: 'Visits', description: 'Visits, newest first.' })

/** By the columns of the table. */
export const newestFirst = orderBy([
  { column: 'created_at', type: 'int64', direction: 'descending' },
  { column: 'id', type: 'int64', direction: 'descending' },
])

export const ListVisits = z.object(
  {
    ownerId,
    ...pagingInputs('visits', newestFirst),
    urgent: urgent.optional().meta({ description: 'Keep only those that are, or are not.' }),
  },
  notAnObject,
)

export const VisitCount = z
  .object({ count: quantityOutput() })
  .meta({ id: 'VisitCount', description: 'How many visits there are.' })

export const OneVisit = z.object({ ownerId, visitId }, notAnObject)

// A field that is left out stays as it is; null clears it.
export const VisitChange = z
  .object(
    {
      ownerId,
      visitId,
      price: price.optional(),
      urgent: urgent.optional(),
      note: note.nullable().optional(),
    },
    notAnObject,
  )
  .meta({ id: 'VisitChange', description: 'What is to change of a visit.' })

export type NewOwner = z.output<typeof NewOwner>
export type Owner = z.output<typeof Owner>
export type NewVisit = z.output<typeof NewVisit>
export type Visit = z.output<typeof Visit>
export type ListVisits = z.output<typeof ListVisits>
export type VisitChange = z.output<typeof VisitChange>
