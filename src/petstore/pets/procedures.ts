/** The procedures of pets. */
import { restMeta } from '../../procedure/meta.ts'
import { paged } from '../../procedure/paging.ts'
import { found, proceduresWith } from '../../procedure/procedure.ts'
import { create } from '../../procedure/write.ts'
import { GetPet, ListPets, NewPet, Pet, Pets } from './schema.ts'
import type { PetStore } from './store.ts'

const { procedure } = proceduresWith<{ pets: PetStore }>()

const tag = { name: 'pets', description: 'The animals of the store.' }
const example: Pet = { id: 42n, name: 'Rex', categoryId: 3n, status: 'available' }
const noPet = (petId: bigint) => `There is no animal with the id ${petId}`

const listPets = procedure
  .meta(
    restMeta({
      method: 'GET',
      path: '/pets',
      isPaged: true,
      tag,
      summary: 'List all animals',
      description: 'Returns a paginated list of animals, by ascending `id`.',
      example: [example],
      sample: 'petstore.listPets.query({ limit: 20 })',
    }),
  )
  .input(ListPets.prefault({}))
  .output(paged(Pets))
  .query(({ ctx, input }) => ctx.stores.pets.list(ctx, input))

const createPet = procedure
  .meta(
    restMeta({
      method: 'POST',
      path: '/pets',
      creates: '/pets/{id}',
      takesKey: true,
      tag,
      summary: 'Add an animal',
      description:
        'Adds an animal to the catalogue and returns it with the `id` it was given. Its `status` is `available` when it is left out.',
      example,
      exampleInput: { name: 'Rex', categoryId: 3, status: 'available' },
      sample: "petstore.createPet.mutate({ name: 'Rex', categoryId: 3, status: 'available' })",
    }),
  )
  .input(NewPet)
  .output(Pet)
  .mutation(({ ctx, input }) => create(ctx, ctx.stores.pets.newPet, input))

const getPet = procedure
  .meta(
    restMeta({
      method: 'GET',
      path: '/pets/{petId}',
      tag,
      summary: 'Get an animal (until 5 December 2030)',
      description:
        'Returns one animal. Deprecated: the operation will be removed on 5 December 2030. Use `GET /pets` with the `status` filter instead. To look up one animal by its `id` there, ask with `cursor` = `id` − 1 and `limit=1`: if the list is empty, or its animal has a greater `id`, no animal has this `id`.',
      deprecated: {
        since: new Date('2026-11-20'),
        sunset: new Date('2030-12-05'),
        successor: '/pets',
      },
      notFound: noPet(example.id),
      example,
      sample: 'petstore.getPet.query({ petId: 42 })',
    }),
  )
  .input(GetPet)
  .output(Pet)
  .query(async ({ ctx, input: { petId } }) =>
    found(await ctx.stores.pets.get(ctx, petId), noPet(petId)),
  )

/** In the order of the document. */
export const petProcedures = { listPets, createPet, getPet }
