/** MySQL and MariaDB: Kysely's dialect and the engine. */
import { type Kysely, MysqlAdapter, MysqlIntrospector, MysqlQueryCompiler, sql } from 'kysely'
import type { Database, Engine, EngineParts, RootDatabase } from '../../database.ts'
import { LockedError } from '../../errors.ts'
import type { Usage } from '../../line.ts'
import { TABLES } from '../../migrations.ts'
import { execute } from '../../statement.ts'
import type { Tables } from '../../tables.ts'
import { onSession } from '../../transaction.ts'
import { mysqlQueryOf } from '../../url.ts'
import { MysqlSessions } from './sessions.ts'
import { COLLATION, TABLE_LOCK } from './set-up.ts'

/** Milliseconds after which a server that does not answer counts as unreachable, by default. */
const CONNECT_TIMEOUT = 5_000

/** The lock of one database of a server: Kysely's own is for all, and waits for an hour. */
const LOCK = sql`left(concat('migrations of ', database()), 64)` // a name has at most 64 characters

/** The comment of the service's tables. The database may contain others. */
const COMMENT = 'created by a migration'

// MariaDB's name, and MySQL's. Both compare code points without padding, so 'Graz' and 'Graz ' are two
// texts, as in SQLite.
const COLLATIONS = ['utf8mb4_nopad_bin', 'utf8mb4_0900_bin']

export interface PoolSettings {
  /** Milliseconds for connecting, and for a statement without a deadline; unlimited by default. */
  timeout?: number | undefined
  /** Maximum number of connections; ten by default. */
  size?: number
  /** The pool keeps these numbers current. */
  usage?: Usage
  /** Is called once with each thing that an operator should know about the server. */
  warn?(message: string): void
}

/**
 * Returns the parts of a database on the server of `url` (mysql://user:password@host:port/database), which may end in
 * an `ssl-mode`, with certificates, or a `socketPath`. Throws for any other query.
 */
export function mysqlParts(
  url: string,
  { timeout, size = 10, usage = { used: 0, waiting: 0 }, warn = () => {} }: PoolSettings,
): EngineParts {
  const server = new URL(url)
  const { tls, socketPath } = mysqlQueryOf(server)
  server.search = '' // mysql2 would take it for its own options
  const host = decodeURIComponent(server.hostname).replace(/^\[(.*)\]$/, '$1')
  const warned = new Set<string>()
  const address = {
    at: socketPath ? { path: socketPath } : { host, port: Number(server.port || 3306) },
    options: {
      uri: server.href,
      ...(socketPath && { socketPath }),
      charset: COLLATION,
      supportBigNumbers: true,
    },
    tls,
    timeout: timeout ?? CONNECT_TIMEOUT,
    known: new Map(),
    warn(message: string) {
      if (!warned.has(message)) warn(message)
      warned.add(message)
    },
  }
  return {
    dialect: {
      createAdapter: () => new MysqlAdapter(),
      createQueryCompiler: () => new MysqlQueryCompiler(),
      createIntrospector: (db: Kysely<unknown>) => new MysqlIntrospector(db),
    },
    engine: new MysqlEngine(),
    settings: { size, timeout, usage },
    createSessions: (demand) => new MysqlSessions(address, size, demand),
  }
}

class MysqlEngine implements Engine {
  readonly idType = 'bigint'
  /** Not `unix_timestamp`, which is wrong by an hour in the hour that a time zone repeats. */
  readonly now = sql<bigint>`timestampdiff(microsecond, '1970-01-01', utc_timestamp(3)) div 1000`
  readonly isInProcess = false

  /** https://dev.mysql.com/doc/refman/9.4/en/locking-functions.html */
  async underLock<Result>(db: RootDatabase, work: (session: Database) => Promise<Result>) {
    return await onSession(db, async (session) => {
      const take = sql<{ taken: bigint }>`select get_lock(${LOCK}, 1) as taken` // waits for a second
      const { rows } = await execute(session, take)
      if (rows[0]?.taken !== 1n) {
        throw new LockedError(new Error('Another session holds the lock of the migrations'), true)
      }
      try {
        // A statement that waits for a table has all later ones wait behind it: so a second at a time.
        await execute(session, sql`set session lock_wait_timeout = 1`)
        return await work(session)
      } finally {
        const release = sql`select release_lock(${LOCK})`
        const restore = sql`set session ${sql.raw(TABLE_LOCK)}`
        // A connection that was lost has released the lock.
        for (const end of [release, restore]) await execute(session, end).catch(() => {})
      }
    })
  }

  /** A table of the service has its comment. */
  async claim(db: Database): Promise<string | undefined> {
    const strange = sql<{ name: string }>`
      select table_name as name from information_schema.tables where table_schema = database()
        and table_comment <> ${COMMENT} and table_name in (${sql.join(TABLES)})
    `
    return (await execute(db, strange)).rows[0]?.name
  }

  /** All of Unicode, compared exactly. The indexes of other row formats, which servers may have by default, have no room for it. */
  async tableOptions(db: Database) {
    const query = sql<{ Collation: string }>`show collation like 'utf8mb4%bin'`
    const known = (await execute(db, query)).rows.map(({ Collation }) => Collation)
    const collation = COLLATIONS.find((name) => known.includes(name)) ?? 'utf8mb4_bin'
    const character = sql`character set utf8mb4 collate ${sql.raw(collation)}`
    return sql`${character} row_format dynamic comment ${sql.lit(COMMENT)}`
  }

  /**
   * MariaDB would use only the first column of the index, and read all rows before the cursor. MySQL
   * would use the primary key, and read all rows that the condition excludes:
   * https://dev.mysql.com/doc/refman/9.4/en/index-hints.html
   */
  forceIndex<Table extends keyof Tables>(table: Table, index: string): Table {
    // Kysely has no hints, but an alias may be any SQL: `pets` as `pets` force index (`pets_status_id`).
    const alias = sql`${sql.id(table)} force index (${sql.id(index)})`
    return sql.table(table).as(alias) as unknown as Table // the same columns under the same name
  }

  /**
   * The statement is a transaction of its own, so its locks end with it. `for share` is MySQL's alone:
   * https://dev.mysql.com/doc/refman/9.4/en/innodb-locking-reads.html
   */
  lockAtOnce<Query extends { forUpdate(): { noWait(): unknown } }>(query: Query): Query {
    return query.forUpdate().noWait() as Query
  }

  /** Each new connection finds the server by its name. */
  checkPlace(): void {}
}
