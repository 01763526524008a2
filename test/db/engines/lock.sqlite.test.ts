/** The write lock of SQLite, and its transactions. */
import { existsSync, readdirSync, readlinkSync } from 'node:fs'
import { StatementSync } from 'node:sqlite'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { connect } from '../../../db/connect.ts'
import { Deadline } from '../../../db/deadline.ts'
import { DatabaseTimeoutError, DatabaseUnavailableError, LockedError } from '../../../db/errors.ts'
import { migrate } from '../../../db/migrate.ts'
import { execute, statement } from '../../../db/statement.ts'
import type { Database } from '../../../db/tables.ts'
import { inTransaction } from '../../../db/transaction.ts'
import { petStore } from '../../../src/petstore/pets/store.ts'
import { newDatabase, type TestDatabase } from '../../support/database.ts'
import { eventually } from '../../support/eventually.ts'
import { openSql, type Sql } from '../../support/sql.ts'

const rex = { name: 'Rex', category_id: 3n, status: 'available' } as const

let database: TestDatabase
let other: Sql
let db: Database
beforeEach(async () => {
  database = await newDatabase()
  db = await connect(database.url)
  await migrate(db)
  other = await openSql(database.url)
})
afterEach(async () => {
  await db.destroy()
  await other.close()
  await database.remove()
})
/** The same database with another timeout for each wait, in milliseconds. */
async function withTimeout(timeout: number): Promise<void> {
  await db.destroy()
  db = await connect(database.url, { timeout })
}
const insert = (executor: Database, deadline?: Deadline) =>
  execute(executor, executor.insertInto('pets').values(rex), deadline)
const selectPets = statement((db) => db.selectFrom('pets').select('id'))
const countPets = async () => (await selectPets(db, {})).rows.length

/** The number of file descriptors of this process for a database; 0 where /proc is missing. */
function descriptors(url: string): number {
  const folder = '/proc/self/fd'
  const path = url.replace(/^sqlite:(.*?)(\?create)?$/, '$1')
  const targetOf = (name: string) => {
    try {
      return readlinkSync(`${folder}/${name}`)
    } catch {
      return '' // closed meanwhile
    }
  }
  const names = existsSync(folder) ? readdirSync(folder) : []
  return names.filter((name) => targetOf(name).includes(path)).length
}

/** Every way to write. */
const writes: [way: string, write: (deadline?: Deadline) => Promise<unknown>][] = [
  ['a statement', (deadline) => insert(db, deadline)],
  ['a transaction', () => db.transaction().execute((transaction) => insert(transaction))],
  [
    'a shared transaction',
    (deadline) => inTransaction(db, (transaction) => insert(transaction, deadline), deadline),
  ],
]

test.each(writes)('%s waits for another process, while reads continue', async (_, write) => {
  await other('begin immediate')
  let isWritten = false
  const written = write().then(() => (isWritten = true))
  for (let turn = 0; turn < 20; turn++) {
    expect(await countPets()).toBe(0)
    // A query that is not compiled once.
    expect(await db.selectFrom('pets').selectAll().execute()).toEqual([])
    await setTimeout(10)
  }
  expect(isWritten).toBe(false)
  await other('rollback')
  await written
  expect(await countPets()).toBe(1)
})

test.each(writes)('%s waits until the timeout of the connection', async (_, write) => {
  await withTimeout(100)
  await other('begin immediate')
  for (const deadline of [undefined, new Deadline(Number.POSITIVE_INFINITY)]) {
    const start = performance.now()
    await expect(write(deadline)).rejects.toBeInstanceOf(LockedError)
    expect(performance.now() - start).toBeGreaterThan(95)
    expect(performance.now() - start, 'not the default of 5 s').toBeLessThan(4_000)
  }
  await other('rollback')
  await setTimeout(50) // a write that was still attempted would succeed now
  expect(await countPets()).toBe(0)
})

test('without a timeout of its own, a connection waits five seconds', async () => {
  const now = performance.now.bind(performance)
  let ahead = 0
  vi.spyOn(performance, 'now').mockImplementation(() => now() + ahead)
  onTestFinished(() => void vi.restoreAllMocks())
  await other('begin immediate')
  const error = insert(db).catch((error) => error)
  await setImmediate() // its wait has begun
  ahead = 3_000
  expect(await Promise.race([error, setTimeout(100, 'waits')])).toBe('waits')
  ahead = 5_000
  expect(await Promise.race([error, setTimeout(2_000, 'waits')])).toBeInstanceOf(LockedError)
  await other('rollback')
})

test('a creation is repeated after an error of the file without an effect', async () => {
  const readOnly = (value: number) => sql`pragma query_only = ${sql.lit(value)}`.execute(db)
  await readOnly(1)
  const pet = { name: 'Rex', categoryId: 3n, status: 'available' } as const
  const made = petStore(db).create(pet, new Deadline(Number.POSITIVE_INFINITY))
  await setImmediate() // the first attempt has failed
  await readOnly(0)
  expect(await made).toMatchObject(pet)
  expect(await countPets()).toBe(1)
})

test('each of several writes ends at its own deadline, without effect', async () => {
  await other('begin immediate')
  const timeouts = [300, 100, 200]
  const ended: number[] = []
  const works = timeouts.map((timeout) => {
    const deadline = new Deadline(timeout)
    return inTransaction(db, (transaction) => insert(transaction, deadline), deadline).finally(() =>
      ended.push(timeout),
    )
  })
  const last = inTransaction(db, (transaction) => insert(transaction))
  for (const { reason } of (await Promise.allSettled(works)) as PromiseRejectedResult[]) {
    expect(reason).toBeInstanceOf(DatabaseTimeoutError)
  }
  expect(ended).toEqual([100, 200, 300])
  await other('rollback')
  await last
  expect(await countPets()).toBe(1)
})

test('writes that arrive during the wait for the lock join the transaction', async () => {
  await other('begin immediate')
  const run = vi.spyOn(StatementSync.prototype, 'run')
  onTestFinished(() => run.mockRestore())
  const works: Promise<unknown>[] = []
  for (let call = 0; call < 3; call++) {
    works.push(inTransaction(db, (transaction) => insert(transaction)))
    await setTimeout(10)
  }
  await other('rollback')
  await Promise.all(works)
  const statements = run.mock.contexts as StatementSync[]
  expect(statements.filter(({ sourceSQL }) => sourceSQL === 'commit')).toHaveLength(1)
})

test('the event loop runs between two groups of writes', async () => {
  const order: string[] = []
  const works = Array.from({ length: 500 }, () =>
    inTransaction(db, async () => void order.push('work')),
  )
  let isOver = false
  const turning = (async () => {
    while (!isOver) {
      await setImmediate()
      if (order.at(-1) !== 'turn') order.push('turn')
    }
  })()
  await Promise.all(works)
  isOver = true
  await turning
  const groups = order
    .join(' ')
    .split('turn')
    .map((group) => group.split('work').length - 1)
  expect(Math.max(...groups)).toBeLessThanOrEqual(200)
})

test('other statements wait for the end of a transaction', async () => {
  const seen: Promise<number>[] = []
  await db.transaction().execute(async (transaction) => {
    await insert(transaction)
    seen.push(countPets(), insert(db).then(countPets))
    const late = insert(db, new Deadline(20))
    await expect(late).rejects.toBeInstanceOf(DatabaseTimeoutError)
    await insert(transaction)
  })
  expect(await Promise.all(seen)).toEqual([2, 3])
  const failed = db.transaction().execute(async (transaction) => {
    await insert(transaction)
    seen.push(insert(db).then(countPets))
    await setTimeout(20)
    throw new Error('undone')
  })
  await expect(failed).rejects.toThrow('undone')
  expect(await seen.at(-1)).toBe(4)
})

test('what waits for the end of a transaction is no part of another that waited too', async () => {
  const waiting: Promise<unknown>[] = []
  await db.transaction().execute(async (transaction) => {
    await insert(transaction)
    const failed = db.transaction().execute(async (next) => {
      await insert(next)
      await setTimeout(20)
      throw new Error('undone')
    })
    waiting.push(expect(failed).rejects.toThrow('undone'))
    await setImmediate() // it waits before the next one does
    waiting.push(insert(db))
    await setImmediate()
  })
  await Promise.all(waiting)
  expect(await countPets()).toBe(2)
})

test('a transaction that SQLite ended has no further statements', async () => {
  await other(`create trigger refuse before insert on pets when new.name = 'Refused'
      begin select raise(rollback, 'refused'); end`)
  const selectOne = statement((db) => db.selectFrom('pets').select('id').limit(1))
  for (const go of [insert, (transaction: Database) => selectOne(transaction, {})]) {
    const failed = db.transaction().execute(async (transaction) => {
      await insert(transaction)
      const refused = transaction.insertInto('pets').values({ ...rex, name: 'Refused' })
      await expect(execute(transaction, refused)).rejects.toThrow('refused')
      await expect(go(transaction)).rejects.toBeInstanceOf(DatabaseUnavailableError)
    })
    await expect(failed).rejects.toBeInstanceOf(DatabaseUnavailableError)
  }
  expect(await countPets()).toBe(0)
})

test('a transaction that SQLite ended writes nothing while another one runs', async () => {
  await other(`create trigger refuse before insert on pets when new.name = 'Refused'
    begin select raise(rollback, 'refused'); end`)
  const ended = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  const failed = db.transaction().execute(async (transaction) => {
    const refused = transaction.insertInto('pets').values({ ...rex, name: 'Refused' })
    await expect(execute(transaction, refused)).rejects.toThrow('refused')
    ended.resolve()
    await begun.promise
    await expect(insert(transaction)).rejects.toBeInstanceOf(DatabaseUnavailableError)
  })
  const rejected = expect(failed).rejects.toBeInstanceOf(DatabaseUnavailableError)
  await ended.promise
  await db.transaction().execute(async (transaction) => {
    await insert(transaction)
    begun.resolve()
    await setTimeout(20)
  })
  await rejected
  expect(await countPets()).toBe(1)
})

test('writes of a transaction that SQLite ended fail with its error', async () => {
  await other(`create trigger refuse before insert on pets when new.name = 'Refused'
    begin select raise(rollback, 'refused'); end`)
  const work = (name: string) =>
    inTransaction(db, (transaction) =>
      execute(transaction, transaction.insertInto('pets').values({ ...rex, name })),
    )
  await other('begin immediate')
  const works = [work('one')]
  await setTimeout(10)
  // They join the transaction during the wait for the lock, except the last one, which is too many.
  for (const name of ['Refused', ...Array(198).fill('two'), 'three']) works.push(work(name))
  await other('rollback')
  const outcomes = await Promise.allSettled(works)
  const reasons = outcomes.map((outcome) => outcome.status === 'rejected' && outcome.reason.message)
  expect(reasons).toEqual([...Array(200).fill('refused'), false])
  expect(await countPets()).toBe(1)
})

test('a statement that a failed work did not await is no part of the next work', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  let late: Promise<unknown> | undefined
  const failed = inTransaction(db, async (transaction) => {
    late = promise.then(() => insert(transaction))
    throw new Error('Failed')
  })
  const next = inTransaction(db, async () => {
    resolve()
    await expect(late).rejects.toThrow('The transaction is over')
  })
  await expect(failed).rejects.toThrow('Failed')
  await next
})

test('statements that wait fail when the database is closed', async () => {
  await other('begin immediate')
  const waiting = Promise.allSettled([
    insert(db),
    inTransaction(db, (transaction) => insert(transaction)),
  ])
  await setTimeout(30)
  await db.destroy()
  const outcomes = await waiting
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  await other('rollback')
  db = await connect(database.url)
  await db
    .transaction()
    .execute(async (transaction) => {
      await insert(transaction)
      const behind = insert(db)
      await setTimeout(10) // until it waits for the transaction
      await db.destroy()
      await expect(behind).rejects.toThrow()
    })
    .catch(() => {})
})

test('a file that another process has locked is opened after its end', async () => {
  await db.destroy()
  await other('pragma locking_mode = exclusive')
  await other('begin immediate')
  await other('rollback') // keeps the lock, until the connection is closed
  db = await connect(database.url)
  const before = descriptors(database.url)
  let isOpen = false
  const opened = countPets().then(() => (isOpen = true))
  await setTimeout(100)
  expect(isOpen).toBe(false)
  // Each attempt closes the file; SQLite keeps a descriptor while this process has locks on the file.
  expect(descriptors(database.url)).toBeLessThanOrEqual(before + 1)
  await other.close()
  await eventually(() => expect(isOpen).toBe(true))
  await opened
})
