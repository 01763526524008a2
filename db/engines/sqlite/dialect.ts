/** SQLite: Kysely's dialect for a file, and the engine: row ids, the lock of the database, its mark. */
import {
  CompiledQuery,
  type Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  sql,
} from 'kysely'
import type { Database, Engine, EngineParts } from '../../database.ts'
import type { Deadline } from '../../deadline.ts'
import { DatabaseUnavailableError } from '../../errors.ts'
import type { Session } from '../../session.ts'
import { execute } from '../../statement.ts'
import type { Tables } from '../../tables.ts'
import { inTransaction } from '../../transaction.ts'
import { SqliteFile } from './file.ts'

/** The `timeout` by default. */
const LOCK_TIMEOUT = 5_000

/** The mark of the service's files, "PETS": https://sqlite.org/pragma.html#pragma_application_id */
const APPLICATION_ID = 0x50_45_54_53

// Immediate: a transaction that begins with a read may be unable to write later
// (https://sqlite.org/rescode.html#busy_snapshot).
const BEGIN = CompiledQuery.raw('begin immediate')
const COMMIT = CompiledQuery.raw('commit')

/** The sessions of a file, which write or wait: what reads needs none. A statement blocks the process, so more would gain nothing. */
const SIZE = 1

/**
 * Returns the parts of a database in the SQLite file at `path`, which is created with its folder if it is missing
 * and `mayCreate`. A statement waits at most `timeout` milliseconds for the transaction of another process, and
 * does not block this one.
 */
export function sqliteParts(path: string, mayCreate: boolean, timeout = LOCK_TIMEOUT): EngineParts {
  const file = new SqliteFile(path, mayCreate, timeout)
  const idle: Session[] = []
  return {
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createQueryCompiler: () => new SqliteQueryCompiler(),
      createIntrospector: (db: Kysely<unknown>) => new SqliteIntrospector(db),
    },
    engine: new SqliteEngine(file),
    settings: { size: SIZE },
    createSessions: () => ({
      take: () => idle.pop() ?? new SqliteSession(file),
      prepare() {},
      giveBack: (session) => void idle.push(session),
      readNow: file.readNow.bind(file),
      close: () => file.close(),
    }),
  }
}

class SqliteSession implements Session {
  readonly hasConsecutiveIds = true
  readonly #file: SqliteFile
  #hasBegun = false

  constructor(file: SqliteFile) {
    this.#file = file
  }

  get isInTransaction(): boolean {
    return this.#hasBegun && this.#file.isOwnedBy(this)
  }

  async execute<Row>(statement: CompiledQuery, deadline: Deadline): Promise<QueryResult<Row>> {
    if (this.#hasBegun && !this.isInTransaction) {
      const cause = new Error('the database has ended the transaction')
      throw new DatabaseUnavailableError(cause, true)
    }
    return await this.#file.execute<Row>(this, statement, deadline)
  }

  async begin(deadline: Deadline): Promise<void> {
    await this.#file.execute(this, BEGIN, deadline)
    this.#hasBegun = true
  }

  /** Commits without a wait for a lock, which the transaction holds (https://sqlite.org/wal.html). */
  async commit(deadline: Deadline): Promise<void> {
    await this.execute(COMMIT, deadline)
    this.#hasBegun = false
  }

  async rollback(): Promise<void> {
    this.#hasBegun = false
    if (this.#file.isOwnedBy(this)) this.#file.undo() // some errors, such as a full disk, have ended it
  }
}

class SqliteEngine implements Engine {
  /** Only a primary key of this type is a row id, which is an int64. */
  readonly idType = 'integer'
  /** Rounded, because the seconds are a floating-point number: https://sqlite.org/lang_datefunc.html */
  readonly now = sql<bigint>`cast(round(unixepoch('subsec') * 1000) as integer)`
  readonly isInProcess = true
  /** The lock of the writers is the lock of the database. A failure undoes the work. */
  readonly underLock = inTransaction
  readonly #file: SqliteFile

  constructor(file: SqliteFile) {
    this.#file = file
  }

  async claim(db: Database, isOurs: boolean): Promise<string | undefined> {
    const strange = sql<{ name: string }>`select name from sqlite_schema, pragma_application_id
      where application_id <> ${APPLICATION_ID}
        and name not like 'sqlite\\_%' escape '\\' and name not in ('kysely_migration', 'kysely_migration_lock')`
    const [other] = isOurs ? [] : (await execute(db, strange)).rows
    if (!other) await execute(db, sql`pragma application_id = ${sql.lit(APPLICATION_ID)}`)
    return other?.name
  }

  async tableOptions() {
    return sql``
  }

  /** SQLite uses all columns of an index without a hint. */
  forceIndex<Table extends keyof Tables>(table: Table): Table {
    return table
  }

  /** The lock of the writers is the only one: no row waits. */
  lockAtOnce<Query>(query: Query): Query {
    return query
  }

  checkPlace(): void {
    this.#file.checkPlace()
  }
}
