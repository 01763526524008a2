/** What all calls of the stand-in share: transactions and Idempotency-Keys in memory. */
import { parse, stringify } from 'devalue'
import { problem } from '../../src/errors/problem.ts'
import type { NewPet } from '../../src/petstore/pets/schema.ts'
import type { Call, KeyedWrites, Shared, Stores, Work } from '../../src/procedure/call.ts'
import { checked } from '../../src/procedure/write.ts'
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
  return { stores: createStores(), transact, keyedWrites: keyedWritesInMemory(transact) }
}

/** Mutations with an Idempotency-Key, whose works run in these transactions. It keeps every key. */
function keyedWritesInMemory(transact: Shared['transact']): KeyedWrites {
  const known = new Map<string, { request: string; answer?: string }>()
  return {
    async run<Output>(call: Call, key: string, work: Work<Output>) {
      const name = `${call.caller.holder} ${key}`
      const request = stringify([call.operation.name, call.input])
      const before = known.get(name)
      if (before) {
        if (before.answer === undefined) throw problem('keyRunning')
        if (before.request !== request) throw problem('keyUsed')
        return parse(before.answer) as Output // the same operation returned it
      }
      known.set(name, { request })
      try {
        const inside = (stores: Stores) => checked(call.inside(stores, call.deadline), work)
        const output = await transact(inside, call.deadline)
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
