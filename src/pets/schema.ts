/** What a pet is, and what the procedures take: validation, types and documentation in one. */
import { z } from 'zod'
import { int64Input, int64Output } from '../int64.ts'

/** Characters (Unicode code points) of the longest name. */
const MAX_NAME = 255
const MAX_LIMIT = 100

export const PetStatus = z
  .enum(['available', 'pending', 'sold'], {
    error: 'must be one of available, pending, sold',
  })
  .meta({ id: 'PetStatus', description: 'Availability of the animal.' })

const nameInput = z
  .string({ error: ({ input }) => (input === undefined ? 'is required' : 'must be a string') })
  .refine((name) => name !== '', { error: 'must not be empty', abort: true })
  // Counted as MySQL and JSON Schema count: code points, not UTF-16 units.
  .refine((name) => name.length <= MAX_NAME || [...name].length <= MAX_NAME, {
    error: `must have at most ${MAX_NAME} characters`,
    abort: true,
  })
  .refine((name) => /\S/.test(name), { error: 'must not be blank' })
  .refine((name) => name.isWellFormed(), { error: 'must not hold half of a surrogate pair' })
  .refine((name) => !name.includes('\0'), { error: 'must not hold the character NUL' })
  .meta({
    description: "The animal's name: not blank, without the character NUL.",
    override: { type: 'string', minLength: 1, maxLength: MAX_NAME, pattern: '\\S' },
    examples: ['Rex'],
  })

const categoryDescription = 'Identifier of the category the animal belongs to.'

export const NewPet = z
  .object(
    {
      name: nameInput,
      categoryId: int64Input.meta({ description: categoryDescription, examples: [3] }),
      // Not `default`, which client generators take for "always there".
      status: PetStatus.meta({
        description: 'Availability of the animal: `available` when it is left out.',
      })
        .optional()
        .transform((status = 'available') => status),
    },
    { error: 'must be an object' },
  )
  .meta({ id: 'NewPet', description: 'An animal to add to the catalogue.' })

export const Pet = z
  .object({
    id: int64Output.meta({
      description: 'Unique identifier, assigned by the service on creation.',
      examples: [42],
    }),
    name: z.string().meta({ description: "The animal's name.", examples: ['Rex'] }),
    categoryId: int64Output.meta({ description: categoryDescription, examples: [3] }),
    status: PetStatus,
  })
  .meta({ id: 'Pet', description: 'An animal of the catalogue.' })

export const Pets = z
  .array(Pet)
  .meta({ id: 'Pets', description: 'Animals of the catalogue, by ascending `id`.' })

export const ListPets = z.object(
  {
    limit: z
      .int({ error: `must be an integer from 1 to ${MAX_LIMIT}`, abort: true })
      .min(1, `must be at least 1`)
      .max(MAX_LIMIT, `must be at most ${MAX_LIMIT}`)
      .default(20)
      .meta({ description: 'Maximum number of animals returned.' }),
    status: PetStatus.meta({
      description: 'Keep only animals with this availability status.',
    }).optional(),
    cursor: int64Input
      .meta({
        description: 'The `id` of the last animal seen: only animals with a greater `id` follow.',
      })
      .optional(),
  },
  { error: 'must be an object' },
)

export const GetPet = z.object(
  { petId: int64Input.meta({ description: 'Identifier of the animal to retrieve.' }) },
  { error: 'must be an object' },
)

export type PetStatus = z.output<typeof PetStatus>
export type NewPet = z.output<typeof NewPet>
export type Pet = z.output<typeof Pet>
export type ListPets = z.output<typeof ListPets>

/** One page of a list; `next` is the cursor of the page after it, if there is one. */
export interface Page<Item> {
  items: Item[]
  next: bigint | undefined
}
