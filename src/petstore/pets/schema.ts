/** The schemas of pets: validation, types and documentation of inputs and outputs. */
import { z } from 'zod'
import { int64Input, int64Output, textInput, textOutput } from '../../procedure/fields.ts'
import { MAX_LIMIT, pagingInputs } from '../../procedure/paging.ts'

export const PetStatus = z
  .enum(['available', 'pending', 'sold'], {
    error: 'must be one of available, pending, sold',
  })
  .meta({ id: 'PetStatus', description: 'Availability of the animal.' })

const categoryDescription = 'Identifier of the category the animal belongs to.'
const notAnObject = { error: 'must be an object' }

export const NewPet = z
  .object(
    {
      name: textInput({
        description:
          "The animal's name: not only white space and invisible characters, without the character NUL.",
        examples: ['Rex'],
      }),
      categoryId: int64Input({ description: categoryDescription, examples: [3] }),
      status: PetStatus.default('available').meta({
        description: 'Availability of the new animal.',
      }),
    },
    notAnObject,
  )
  .meta({
    id: 'NewPet',
    description:
      'An animal to add to the catalogue. Its `status` is `available` when it is left out.',
  })

export const Pet = z
  .object({
    id: int64Output({
      description: 'Unique identifier, assigned by the service on creation.',
      examples: [42],
    }),
    name: textOutput({ description: "The animal's name.", examples: ['Rex'] }),
    categoryId: int64Output({ description: categoryDescription, examples: [3] }),
    status: PetStatus,
  })
  .meta({ id: 'Pet', description: 'An animal of the catalogue.' })

export const Pets = z
  .array(Pet)
  .max(MAX_LIMIT)
  .meta({ id: 'Pets', description: 'Animals of the catalogue, by ascending `id`.' })

const { limit, cursor } = pagingInputs('animals')
export const ListPets = z.object(
  {
    limit,
    status: PetStatus.optional().meta({
      description: 'Keep only animals with this availability status.',
    }),
    cursor,
  },
  notAnObject,
)

export const GetPet = z.object(
  { petId: int64Input({ description: 'Identifier of the animal to retrieve.', examples: [42] }) },
  notAnObject,
)

export type PetStatus = z.output<typeof PetStatus>
export type NewPet = z.output<typeof NewPet>
export type Pet = z.output<typeof Pet>
export type ListPets = z.output<typeof ListPets>
