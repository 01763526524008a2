/** What a toy is: as different from a pet as can be. */
import { z } from 'zod'
import { BY_ID } from '../../db/order.ts'
import { dateTimeInput, dateTimeOutput } from '../../src/dates.ts'
import { int64Input, int64Output } from '../../src/int64.ts'
import { pagingInputs } from '../../src/paging.ts'
import { textInput, textOutput } from '../../src/text.ts'

const notAnObject = { error: 'must be an object' }

const price = z
  .number({ error: ({ input }) => (input === undefined ? 'is required' : 'must be a number') })
  .min(0, 'must be at least 0')
const washable = z.boolean({ error: 'must be true or false' })
const madeAt = dateTimeInput({ description: 'When the toy was made.' })

export const NewToy = z
  .object(
    {
      label: textInput({ description: 'Names the toy; no other has it.', examples: ['Ball'] }, 40),
      price: price.meta({ description: 'In euros.', examples: [2.5] }),
      washable: washable.default(false).meta({ description: 'Whether it may be washed.' }),
      madeAt,
      ages: z
        .array(z.int({ error: 'must be a whole number' }), { error: 'must be a list' })
        .default([])
        .meta({ description: 'For which ages it is.' }),
    },
    notAnObject,
  )
  .meta({ id: 'NewToy', description: 'A toy to add.' })

export const Toy = z
  .object({
    id: int64Output({ description: 'Identifies the toy.', examples: [7] }),
    label: textOutput({}, 40),
    price: z.number(),
    washable: z.boolean(),
    madeAt: dateTimeOutput(),
    ages: z.array(z.int()),
  })
  .meta({ id: 'Toy', description: 'A toy.' })

export const Toys = z.array(Toy).meta({ id: 'Toys', description: 'Toys, by ascending `id`.' })

const toyId = int64Input({ description: 'Identifier of the toy.' })

export const ListToys = z.object(
  {
    ...pagingInputs('toys', BY_ID),
    label: textInput({ description: 'Keep only the toy with this label.' }, 40).optional(),
    washable: washable.optional().meta({ description: 'Keep only those that are, or are not.' }),
    ages: z
      .array(z.int({ error: 'must be a whole number' }))
      .optional()
      .meta({ description: 'Keep only those for all of these ages.' }),
  },
  notAnObject,
)

export const OneToy = z.object({ toyId }, notAnObject)

export const ToyChange = z
  .object({ toyId, price: price.optional(), washable: washable.optional() }, notAnObject)
  .meta({ id: 'ToyChange', description: 'What is to change of a toy.' })

export type NewToy = z.output<typeof NewToy>
export type Toy = z.output<typeof Toy>
export type ListToys = z.output<typeof ListToys>
export type ToyChange = z.output<typeof ToyChange>
