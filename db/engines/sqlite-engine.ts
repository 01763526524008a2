/** What SQLite has of its own: the type of ids, and transactions that share a commit. */
import { type Kysely, SqliteAdapter, sql } from 'kysely'
import type { Engine } from '../engine.ts'
import type { Tables } from '../tables.ts'
import { inGroup } from './sqlite-groups.ts'

export class SqliteEngine extends SqliteAdapter implements Engine {
  /** A row id is an int64, and has this name only. */
  readonly idType = 'integer'
  readonly pagesPerQuery = 1
  readonly inTransaction = inGroup
  readonly #isInTransaction: () => boolean

  constructor(isInTransaction: () => boolean) {
    super()
    this.#isInTransaction = isInTransaction
  }

  // Otherwise one session that waits would make all others wait in Kysely.
  override get supportsMultipleConnections(): boolean {
    return true
  }

  // An immediate transaction keeps other processes out, and the driver keeps out other sessions.
  override async acquireMigrationLock(db: Kysely<unknown>): Promise<void> {
    await sql`begin immediate`.execute(db)
  }

  override async releaseMigrationLock(db: Kysely<unknown>): Promise<void> {
    if (this.#isInTransaction()) await sql`commit`.execute(db)
  }

  async tableOptions() {
    return sql``
  }

  async hasIndex(db: Kysely<unknown>, _table: string, name: string): Promise<boolean> {
    const query = sql`select name from sqlite_master where type = 'index' and name = ${name}`
    return (await query.execute(db)).rows.length > 0
  }

  /** SQLite uses all columns of an index, and knows the index of a constraint by no name. */
  readBy<Table extends keyof Tables>(table: Table): Table {
    return table
  }

  async checkTables(): Promise<void> {}
}
