/** The write lock of SQLite, and its transactions. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { existsSync, mkdirSync, renameSync } from 'node:fs'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { connect } from '../../../db/connect.ts'
import type { Database, RootDatabase } from '../../../db/database.ts'
import { Deadline } from '../../../db/deadline.ts'
import { sqliteError } from '../../../db/engines/sqlite/errors.ts'
import {
  BrokenDatabaseError,
  DatabaseTimeoutError,
  DatabaseUnavailableError,
  LockedError,
  MissingDatabaseError,
} from '../../../db/errors.ts'
import { migrate } from '../../../db/migrate.ts'
import { execute } from '../../../db/statement.ts'
import { inTransaction } from '../../../db/transaction.ts'
import { petStore } from '../../../src/petstore/pets/store.ts'
import { newDatabase, type TestDatabase } from '../../support/database.ts'
import { addPet } from '../../support/pets.ts'
import { openSql, type Sql } from '../../support/sql.ts'

/** Calls a function as if no transaction had called it: the guard of transactions would refuse that. */
const outside = AsyncLocalStorage.snapshot()

const rex = { name: 'Rex', category_id: 3n, status: 'available' } as const

let database: TestDatabase
let other: Sql
let db: RootDatabase
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
const file = () => database.url.slice('sqlite:'.length)
/** The same database with another timeout for each wait, in milliseconds. */
async function withTimeout(timeout: number): Promise<void> {
  await db.destroy()
  db = await connect(database.url, { timeout })
}
const insert = (executor: Database, deadline?: Deadline) =>
  execute(executor, executor.kysely.insertInto('pets').values(rex), deadline)
const countPets = async () =>
  (await execute(db, db.kysely.selectFrom('pets').select('id'))).rows.length

test.each<[what: string, within?: (transaction: Database) => Promise<unknown>]>([
  ['its commit'],
  [
    'a look at the files between its statements',
    async (transaction) => {
      expect(() => db.engine.checkPlace()).toThrow(BrokenDatabaseError)
      renameSync(`${file()}.away`, file())
      await insert(transaction) // not alone
    },
  ],
])('%s, while the file is away, undoes a transaction: the next one works', async (_, within) => {
  const away = `${file()}.away`
  const undone = inTransaction(db, async (transaction) => {
    await insert(transaction)
    renameSync(file(), away)
    await within?.(transaction)
  })
  await expect(undone).rejects.toThrow(DatabaseUnavailableError)
  if (existsSync(away)) renameSync(away, file())
  await inTransaction(db, (transaction) => insert(transaction))
  expect(await countPets()).toBe(1)
})

/** Every way to write. */
const writes: [way: string, write: (deadline?: Deadline) => Promise<unknown>][] = [
  ['a statement', (deadline) => insert(db, deadline)],
  [
    'a transaction',
    (deadline) => inTransaction(db, (transaction) => insert(transaction, deadline)),
  ],
]

test.each(writes)('%s waits for another process, while reads continue', async (_, write) => {
  await other('begin immediate')
  const written = write()
  for (let turn = 0; turn < 10; turn++) {
    expect(await countPets()).toBe(0)
    await setTimeout(10)
  }
  await other('rollback')
  await written
  expect(await countPets()).toBe(1)
})

test.each(writes)('%s waits until the timeout of the connection', async (_, write) => {
  await withTimeout(100)
  await other('begin immediate')
  const start = performance.now()
  const deadline = new Deadline(Number.POSITIVE_INFINITY)
  await expect(write(deadline)).rejects.toBeInstanceOf(LockedError)
  expect(performance.now() - start).toBeGreaterThan(95)
  expect(performance.now() - start, 'not the default of 5 s').toBeLessThan(4_000)
  await other('rollback')
  await setTimeout(50) // a write that was still attempted would succeed now
  expect(await countPets()).toBe(0)
})

test('a creation is repeated after an error of the file without an effect', async () => {
  const readOnly = (value: number) => execute(db, sql`pragma query_only = ${sql.lit(value)}`)
  await readOnly(1)
  const pet = { name: 'Rex', categoryId: 3n, status: 'available' } as const
  const made = addPet(petStore(db), { deadline: new Deadline(Number.POSITIVE_INFINITY) }, pet)
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
    return inTransaction(db, (transaction) => insert(transaction), deadline).finally(() =>
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

test('other statements wait for the end of a transaction', async () => {
  const seen: Promise<number>[] = []
  await inTransaction(db, async (transaction) => {
    await insert(transaction)
    seen.push(
      outside(() => countPets()),
      outside(() => insert(db).then(countPets)),
    )
    const late = outside(() => insert(db, new Deadline(20)))
    await expect(late).rejects.toBeInstanceOf(DatabaseTimeoutError)
    await insert(transaction)
  })
  expect(await Promise.all(seen)).toEqual([2, 3])
  const failed = inTransaction(db, async (transaction) => {
    await insert(transaction)
    seen.push(outside(() => insert(db).then(countPets)))
    await setTimeout(20)
    throw new Error('undone')
  })
  await expect(failed).rejects.toThrow('undone')
  expect(await seen.at(-1)).toBe(4)
})

test('what waits for the end of a transaction is no part of another that waited too', async () => {
  const waiting: Promise<unknown>[] = []
  await inTransaction(db, async (transaction) => {
    await insert(transaction)
    const fail = async (next: Database) => {
      await insert(next)
      await setTimeout(20)
      throw new Error('undone')
    }
    const failed = outside(() => inTransaction(db, fail))
    waiting.push(expect(failed).rejects.toThrow('undone'))
    await setImmediate() // it waits before the next one does
    waiting.push(outside(() => insert(db)))
    await setImmediate()
  })
  await Promise.all(waiting)
  expect(await countPets()).toBe(2)
})

test('a transaction that SQLite ended writes nothing more', async () => {
  await other(`create trigger refuse before insert on pets when new.name = 'Refused'
    begin select raise(rollback, 'refused'); end`)
  const failed = inTransaction(db, async (transaction) => {
    const refused = transaction.kysely.insertInto('pets').values({ ...rex, name: 'Refused' })
    await expect(execute(transaction, refused)).rejects.toThrow('refused')
    await expect(insert(transaction)).rejects.toBeInstanceOf(DatabaseUnavailableError)
  })
  await expect(failed).rejects.toBeInstanceOf(DatabaseUnavailableError)
  await inTransaction(db, (transaction) => insert(transaction))
  expect(await countPets()).toBe(1)
})

test('work fails with the error with which SQLite ended its transaction', async () => {
  await other(`create trigger refuse before insert on pets when new.name = 'Refused'
    begin select raise(rollback, 'refused'); end`)
  const work = (name: string) =>
    inTransaction(db, (transaction) =>
      execute(transaction, transaction.kysely.insertInto('pets').values({ ...rex, name })),
    )
  const [refused, added] = await Promise.allSettled([work('Refused'), work('Rex')])
  expect(refused).toMatchObject({ reason: { message: 'refused' } })
  expect(added.status).toBe('fulfilled')
  expect(await countPets()).toBe(1)
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
  let closing: Promise<void> | undefined
  const closed = inTransaction(db, async (transaction) => {
    await insert(transaction)
    const behind = outside(() => insert(db))
    await setTimeout(10) // until it waits for the transaction
    closing = db.destroy()
    await expect(behind).rejects.toThrow()
  })
  await expect(closed).rejects.toThrow()
  await closing
})

test('a database that was closed opens no file again', async () => {
  await db.destroy()
  const list = () => execute(db, db.kysely.selectFrom('pets').select('id'))
  await expect(list()).rejects.toThrow(BrokenDatabaseError)
  const path = `${file()}.new`
  const unused = await connect(`sqlite:${path}?create`)
  await unused.destroy()
  using deadline = new Deadline(1_000)
  await expect(petStore(unused).get({ deadline }, 1n)).rejects.toThrow(BrokenDatabaseError)
  expect(existsSync(path)).toBe(false)
})

test('a file that is missing, or is a folder, is an error that is not repeated', async () => {
  const path = `${file()}.other`
  await using elsewhere = await connect(`sqlite:${path}`)
  const list = () => execute(elsewhere, elsewhere.kysely.selectFrom('pets').select('id'))
  await expect(list()).rejects.toThrow(MissingDatabaseError)
  mkdirSync(path)
  await expect(list()).rejects.toThrow(BrokenDatabaseError)
})

// SQLITE_BUSY, _RECOVERY, _SNAPSHOT and _TIMEOUT: https://sqlite.org/rescode.html
test.each([5, 261, 517, 773])('the code %i is a LockedError', (errcode) => {
  const error = Object.assign(new Error('locked'), { code: 'ERR_SQLITE_ERROR', errcode })
  expect(sqliteError(error)).toBeInstanceOf(LockedError)
})
