/** A transaction: its statements run one after another on its session. */
import { expect, test } from 'vitest'
import { execute } from '../../db/statement.ts'
import { inTransaction } from '../../db/transaction.ts'
import { drain, forever, newQueue, planOf } from './queue/sessions.ts'

const twice = (input: number) => 2 * input
const lookUps = planOf('lookUps', twice, { maxSize: 4, identityOf: String })

function newTransaction() {
  const { db, sessions } = newQueue({ size: 2 })
  const { running } = sessions
  return {
    db,
    sent: () => running.map(({ sql, inputs }) => [sql, ...inputs]),
    async end() {
      running[0]?.end()
      await drain()
    },
  }
}

test('statements that are begun together are sent one after another, and plans do not share any', async () => {
  const { db, sent, end } = newTransaction()
  const result = inTransaction(db, (transaction) =>
    Promise.all([1, 1, 2].map((input) => transaction.runner.run(lookUps, input, forever()))),
  )
  for (const expected of [['begin'], ['lookUps', 1], ['lookUps', 1], ['lookUps', 2], ['commit']]) {
    await drain()
    expect(sent()).toEqual([expected])
    await end()
  }
  expect(await result).toEqual([2, 2, 4])
})

test('a statement that waits for another one leaves at its deadline, and is not sent', async () => {
  const { db, sent, end } = newTransaction()
  const left = forever()
  let leaving: Promise<unknown> | undefined
  const result = inTransaction(db, async (transaction) => {
    const first = transaction.runner.run(lookUps, 1, forever())
    leaving = expect(transaction.runner.run(lookUps, 2, left)).rejects.toThrow('left')
    const last = transaction.runner.run(lookUps, 3, forever())
    return [await first, await last]
  })
  await drain()
  await end()
  left.giveUp(new Error('The client has left'))
  await leaving
  for (const expected of [['lookUps', 1], ['lookUps', 3], ['commit']]) {
    await drain()
    expect(sent()).toEqual([expected])
    await end()
  }
  expect(await result).toEqual([2, 6])
})

test('the end waits for the statement that runs, and rejects those that wait or come', async () => {
  const { db, sent, end } = newTransaction()
  let late: Promise<PromiseSettledResult<unknown>[]> | undefined
  const result = inTransaction(db, async (transaction) => {
    const query = transaction.kysely.selectFrom('pets').select('id')
    void transaction.runner.run(lookUps, 1, forever())
    await drain()
    const later = new Promise(setImmediate).then(() => execute(transaction, query))
    late = Promise.allSettled([execute(transaction, query), later])
    return 'made'
  })
  await drain()
  await end()
  await drain()
  expect(sent()).toEqual([['lookUps', 1]])
  await end()
  expect(sent()).toEqual([['commit']])
  await new Promise(setImmediate)
  await end()
  expect(await result).toBe('made')
  expect(await late).toHaveLength(2)
  for (const outcome of (await late) ?? []) {
    expect(outcome).toMatchObject({ reason: { message: expect.stringContaining('is over') } })
  }
})
