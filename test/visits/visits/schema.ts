/** The inputs and outputs of visits, which belong to owners. */
import { z } from 'zod'
import {
  dateTimeInput,
  dateTimeOutput,
  int64Input,
  int64Output,
  textInput,
  textOutput,
} from '../../../src/procedure/fields.ts'
import { MAX_LIMIT, pagingInputs, textCursor } from '../../../src/procedure/paging.ts'

/** Characters of a name. */
export const NAME = 40

export const Owner = z
  .object({
    id: int64Output({ description: 'Identifies the owner.' }),
    name: textOutput({ description: 'The name.' }, NAME),
  })
  .meta({ id: 'Owner', description: 'An owner.' })

export const NewOwner = z
  .object({ name: textInput({ description: 'The name.' }, NAME) })
  .meta({ id: 'NewOwner', description: 'An owner to add.' })

export const Owners = z.array(Owner).max(MAX_LIMIT).meta({ id: 'Owners' })

export const ListOwners = z.object({
  ...pagingInputs('owners'),
  cursor: textCursor('owners', 'name', NAME),
  prefix: textInput({}, NAME).optional().meta({ description: 'Keep only names that begin so.' }),
})

const ownerId = int64Input({ description: 'Identifier of the owner.' })
const urgent = z.boolean({ error: 'must be true or false' })
const note = textInput({}).nullable()
const aboutNote = { description: 'What is to be known; null where there is nothing.' }

export const OneOwner = z.object({ ownerId })

export const NewVisit = z
  .object({
    ownerId,
    reference: textInput({ description: 'Names the visit; no other has it.' }, 40),
    at: dateTimeInput({ description: 'When it is.' }),
    urgent: urgent.default(false).meta({ description: 'Whether it comes before others.' }),
    note: note.default(null).meta(aboutNote),
  })
  .meta({ id: 'NewVisit', description: 'A visit to add.' })

export const Visit = z
  .object({
    id: int64Output({ description: 'Identifies the visit.' }),
    reference: textOutput({ description: 'Names the visit.' }, 40),
    at: dateTimeOutput({ description: 'When it is.' }),
    urgent: z.boolean().meta({ description: 'Whether it comes before others.' }),
    note: textOutput({}).nullable().meta(aboutNote),
    closedAt: dateTimeOutput().nullable().meta({ description: 'When it was closed; null before.' }),
  })
  .meta({ id: 'Visit', description: 'A visit.' })

export const Visits = z.array(Visit).max(MAX_LIMIT).meta({ id: 'Visits' })

export const ListVisits = z.object({
  ownerId,
  ...pagingInputs('visits'),
  urgent: urgent.optional().meta({ description: 'Keep only those that are, or are not.' }),
})

export const OneVisit = z.object({ ownerId, visitId: int64Input({ description: 'The visit.' }) })

// A field that is left out stays as it is; null clears it.
export const VisitChange = OneVisit.extend({
  urgent: urgent.optional().meta({ description: 'Whether it comes before others.' }),
  note: note.optional().meta(aboutNote),
}).meta({ id: 'VisitChange', description: 'What is to change of a visit.' })

export type Owner = z.output<typeof Owner>
export type NewOwner = z.output<typeof NewOwner>
export type ListOwners = z.output<typeof ListOwners>
export type NewVisit = z.output<typeof NewVisit>
export type Visit = z.output<typeof Visit>
export type ListVisits = z.output<typeof ListVisits>
export type OneVisit = z.output<typeof OneVisit>
export type VisitChange = z.output<typeof VisitChange>
