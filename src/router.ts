/** THE router: every operation of the service, once, for tRPC and for REST. */
import { TRPCError } from '@trpc/server'
import { IdempotencyHeaders, idempotencyError, parseIdempotencyKey } from './idempotency/header.ts'
import { GetPet, ListPets, NewPet, Pet, Pets } from './pets/schema.ts'
import { keyedProcedure, router } from './trpc/init.ts'

const example = { id: 42, name: 'Rex', categoryId: 3, status: 'available' }

export const appRouter = router({
  listPets: keyedProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/pets',
        tags: ['pets'],
        summary: 'List all animals',
        description:
          'Returns a paginated list of animals, by ascending `id`. While there are more, the answer has a `Link` header with `rel="next"`, the address of the next page.',
      },
      rest: {
        paged: true,
        examples: { output: [example], badRequest: 'limit must be at most 100' },
      },
    })
    .input(ListPets.prefault({}))
    .output(Pets)
    .query(async ({ ctx, input }) => {
      const { items, next } = await ctx.pets.list(input, ctx.deadline)
      ctx.page.next = next
      return items
    }),

  createPet: keyedProcedure
    .meta({
      openapi: {
        method: 'POST',
        path: '/pets',
        tags: ['pets'],
        summary: 'Add an animal',
        description:
          'Adds an animal to the catalogue and returns it with the `id` it was given. With an `Idempotency-Key` a request can be repeated safely: the repetition adds nothing and is answered as the first.',
        requestHeaders: IdempotencyHeaders,
      },
      rest: {
        idempotent: true,
        location: (pet: Pet) => `/pets/${pet.id}`,
        examples: {
          input: { name: 'Rex', categoryId: 3, status: 'available' },
          output: example,
          badRequest: 'name is required',
        },
      },
    })
    .input(NewPet)
    .output(Pet)
    .mutation(async ({ ctx, input }) => {
      const { pets, idempotency, deadline, caller } = ctx
      const key = parseIdempotencyKey(ctx.idempotencyHeader)
      if (key === undefined) return await pets.create(input, deadline)
      const request = { apiKeyId: caller.keyId, key, operation: 'createPet', input }
      const outcome = await idempotency.once(request, deadline, (transaction) =>
        pets.create(input, deadline, transaction),
      )
      if (typeof outcome === 'string') throw idempotencyError(outcome)
      return outcome.output
    }),

  getPet: keyedProcedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/pets/{petId}',
        tags: ['pets'],
        summary: 'Get an animal (until 5 December 2030)',
        description:
          'Returns one animal. Deprecated: the operation will be removed on 5 December 2030. Use `GET /pets` with the `status` filter instead.',
        deprecated: true,
      },
      rest: {
        examples: {
          output: example,
          badRequest: 'petId must be an integer from -9223372036854775808 to 9223372036854775807',
          notFound: 'There is no animal with the id 42',
        },
        deprecation: {
          since: new Date('2026-11-20'),
          sunset: new Date('2030-12-05'),
          successor: '/pets',
        },
      },
    })
    .input(GetPet)
    .output(Pet)
    .query(async ({ ctx, input }) => {
      const pet = await ctx.pets.get(input.petId, ctx.deadline)
      if (!pet) {
        throw new TRPCError({
          code: 'NOT_FOUND',
          message: `There is no animal with the id ${input.petId}`,
        })
      }
      return pet
    }),
})

export type AppRouter = typeof appRouter
