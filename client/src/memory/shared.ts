/** What all calls of the stand-in share: transactions and Idempotency-Keys in memory. */
import { parse, stringify } from 'devalue'
import { problem } from '../../../src/errors/problem.ts'
import { scopedKeyOf } from '../../../src/idempotency/header.ts'
import type { NewPet } from '../../../src/petstore/pets/schema.ts'
import type { Call, KeyedWrites, Shared } from '../../../src/procedure/call.ts'
import { insertRow, outputOfWork } from '../../../src/procedure/write.ts'
import { type Stores, storesInMemory } from './stores.ts'
import type { Undo } from './table.ts'

/** Returns what all calls of the stand-in share, with these pets in memory. */
export const sharedInMemory = (initial: NewPet[]): Shared<Stores> =>
  sharedOf(storesInMemory(initial))

/** Returns what all calls of a stand-in share, with stores that add the opposite of each change to `undo`. */
export function sharedOf<Stores>(createStores: (undo?: Undo[]) => Stores): Shared<Stores> {
  const run = async <Result>(work: (stores: Stores) => Promise<Result>): Promise<Result> => {
    const undo: Undo[] = []
    try {
      return await work(createStores(undo))
    } catch (error) {
      for (const step of undo.reverse()) step()
      throw error
    }
  }
  let last: Promise<unknown> = Promise.resolve()
  // One after another: none sees, or undoes, the steps of another one.
  const transact: Shared<Stores>['transact'] = (work) => {
    const result = last.then(() => run(work))
    last = result.catch(() => {})
    return result
  }
  return { stores: createStores(), transact, keyedWrites: keyedWritesInMemory(transact) }
}

/** Mutations with an Idempotency-Key, whose works run in these transactions. It keeps every key. */
function keyedWritesInMemory<Stores>(transact: Shared<Stores>['transact']): KeyedWrites {
  const known = new Map<string, { request: string; answer?: string }>()
  const once = async <Output>(call: Call, make: () => Promise<Output>) => {
    const key = `${call.caller.holder} ${scopedKeyOf(call)}`
    const request = stringify([call.operation.name, call.progress.input])
    const before = known.get(key)
    if (before) {
      if (before.answer === undefined) throw problem('keyRunning')
      if (before.request !== request) throw problem('keyUsed')
      return parse(before.answer) as Output // the same operation returned it
    }
    known.set(key, { request })
    try {
      const output = await make()
      // As a text: a store that changes its object in place must not change the answer, too.
      known.set(key, { request, answer: stringify(output) })
      return output
    } catch (error) {
      known.delete(key)
      throw error
    }
  }
  return {
    runWork: (call, work) =>
      once(call, () => transact((stores) => outputOfWork(call, stores, work), call.deadline)),
    create: (call, creation, input) => once(call, () => insertRow(call, creation, input)),
  }
}
