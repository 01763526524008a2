/** What can be done with toys: a router of its own, beside the procedures of pets. */
import { TRPCError } from '@trpc/server'
import { z } from 'zod'
import { DuplicateError } from '../../db/errors.ts'
import { BY_ID } from '../../db/order.ts'
import type { Database } from '../../db/tables.ts'
import { once } from '../../src/idempotency/once.ts'
import { operation } from '../../src/operation.ts'
import { paged } from '../../src/paging.ts'
import { createPet, getPet, listPets } from '../../src/pets/procedures.ts'
import { createStores, type Stores } from '../../src/stores.ts'
import { keyedProcedure, router } from '../../src/trpc.ts'
import { write } from '../../src/write.ts'
import { ListToys, NewToy, OneToy, Toy, ToyChange, Toys } from './schema.ts'
import { type ToyStore, toyStore } from './store.ts'

/** In the service itself this would be a line of `Stores`, which a test cannot add to. */
interface StoresWithToys extends Stores {
  toys: ToyStore
}
export const createStoresWithToys = (db: Database): StoresWithToys => ({
  ...createStores(db),
  toys: toyStore(db),
})
const toysOf = ({ stores }: { stores: Stores }) => (stores as StoresWithToys).toys

const tag = 'toys'
const example: Toy = {
  id: 7n,
  label: 'Ball',
  price: 2.5,
  washable: true,
  madeAt: new Date('2026-01-02T03:04:05Z'),
  ages: [3, 4],
}
const exampleInput = { label: 'Ball', price: 2.5, madeAt: '2026-01-02T03:04:05Z', ages: [3, 4] }
const noToy = (id: bigint) => `There is no toy with the id ${id}`
const notFound = noToy(example.id)
const conflict = 'There is a toy with this label already'

const found = (toy: Toy | undefined, id: bigint): Toy => {
  if (!toy) throw new TRPCError({ code: 'NOT_FOUND', message: noToy(id) })
  return toy
}

const toys = router({
  list: keyedProcedure
    .meta(
      operation({
        method: 'GET',
        path: '/toys',
        paged: true,
        tag,
        summary: 'List toys',
        description: 'Returns a page of toys.',
        example: [example],
      }),
    )
    .input(ListToys.prefault({}))
    .output(Toys)
    .query(paged({ by: BY_ID }, ({ ctx, input }) => toysOf(ctx).list(input, ctx.deadline))),

  create: keyedProcedure
    .meta(
      operation({
        method: 'POST',
        path: '/toys',
        creates: '/toys/{id}',
        conflict,
        tag,
        summary: 'Add a toy',
        description: 'Adds a toy, unless there is one with this label.',
        example,
        exampleInput,
      }),
    )
    .input(NewToy)
    .output(Toy)
    .mutation(
      once(async ({ ctx, input }) => {
        try {
          return await toysOf(ctx).create(input, ctx.deadline)
        } catch (error) {
          if (!(error instanceof DuplicateError)) throw error
          throw new TRPCError({ code: 'CONFLICT', message: conflict, cause: error })
        }
      }),
    ),

  get: keyedProcedure
    .meta(
      operation({
        method: 'GET',
        path: '/toys/{toyId}',
        notFound,
        tag,
        summary: 'Get a toy',
        description: 'Returns one toy.',
        example,
      }),
    )
    .input(OneToy)
    .output(Toy)
    .query(async ({ ctx, input: { toyId } }) =>
      found(await toysOf(ctx).get(toyId, ctx.deadline), toyId),
    ),

  update: keyedProcedure
    .meta(
      operation({
        method: 'PATCH',
        path: '/toys/{toyId}',
        notFound,
        tag,
        summary: 'Change a toy',
        description: 'Changes what the body names, and nothing else.',
        example,
        exampleInput: { price: 3 },
      }),
    )
    .input(ToyChange)
    .output(Toy)
    .mutation(
      write(async ({ ctx, input }) =>
        found(await toysOf(ctx).update(input, ctx.deadline), input.toyId),
      ),
    ),

  remove: keyedProcedure
    .meta(
      operation({
        method: 'DELETE',
        path: '/toys/{toyId}',
        notFound,
        tag,
        summary: 'Remove a toy',
        description: 'Removes one toy.',
      }),
    )
    .input(OneToy)
    .output(z.void())
    .mutation(
      write(async ({ ctx, input: { toyId } }) => {
        if (await toysOf(ctx).remove(toyId, ctx.deadline)) return
        throw new TRPCError({ code: 'NOT_FOUND', message: noToy(toyId) })
      }),
    ),
})

export const routerWithToys = router({ listPets, createPet, getPet, toys })
export type RouterWithToys = typeof routerWithToys
