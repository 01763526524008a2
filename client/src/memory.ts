/** What all calls of the stand-in share: transactions and Idempotency-Keys in memory. */
import { parse, stringify } from 'devalue'
import type { Deadline } from '../../db/deadline.ts'
import { problem } from '../../src/errors/problem.ts'
import type { Idempotency, Make } from '../../src/idempotency/store.ts'
import type { NewPet } from '../../src/petstore/pets/schema.ts'
import type { Shared, Stores } from '../../src/procedure/call.ts'
import { storesInMemory, type Undo } from './memory-stores.ts'

/** Returns what all calls of the stand-in share, with these pets in memory. */
export function sharedInMemory(initial: NewPet[]): Shared {
  const createStores = storesInMemory(initial)
  const transact: Shared['transact'] = async (work) => {
    const undo: Undo[] = []
    try {
      return await work(createStores(undo))
    } catch (error) {
      for (const step of undo.reverse()) step()
      throw error
    }
  }
  return { stores: createStores(), transact, idempotency: idempotencyInMemory(transact) }
}

/** Returns the record of Idempotency-Keys, whose works run in these transactions. It keeps every key. */
export function idempotencyInMemory(transact: Shared['transact']): Idempotency<Stores> {
  const known = new Map<string, { request: string; answer?: string }>()
  return {
    async once<Output>(
      { holder, key, operation, input }: Parameters<Idempotency<Stores>['once']>[0],
      deadline: Deadline,
      make: Make<Stores, Output>,
    ) {
      const name = `${holder} ${key}`
      const request = stringify([operation, input])
      const before = known.get(name)
      if (before) {
        if (before.answer === undefined) throw problem('keyRunning')
        if (before.request !== request) throw problem('keyUsed')
        return parse(before.answer) as Output // the same operation returned it
      }
      known.set(name, { request })
      try {
        const output = await transact((stores) => make(stores, deadline), deadline)
        // As a text: a store that changes its object in place must not change the answer, too.
        known.set(name, { request, answer: stringify(output) })
        return output
      } catch (error) {
        known.delete(name)
        throw error
      }
    },
  }
}
