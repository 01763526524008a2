/** The lock under which migrations run on MySQL: one for each database of a server. */
import { type Kysely, MysqlAdapter, sql } from 'kysely'
import { LockedError } from '../errors.ts'

/** Seconds that one attempt waits for the lock. */
const WAIT = 1

/** Characters that the name of a lock may have. */
const MAX_NAME = 64

/**
 * Kysely's own lock is one for all databases of a server, and is waited for an hour. Throws
 * LockedError when another session holds this one:
 * https://dev.mysql.com/doc/refman/9.4/en/locking-functions.html
 */
export class LockingAdapter extends MysqlAdapter {
  readonly #name: string

  /** The adapter for the database of a URL (mysql://user:password@host:port/database). */
  constructor(url: string) {
    super()
    const database = decodeURIComponent(new URL(url).pathname.slice(1))
    this.#name = `migrations of ${database}`.slice(0, MAX_NAME)
  }

  override async acquireMigrationLock(db: Kysely<unknown>): Promise<void> {
    const query = sql<{ taken: bigint }>`select get_lock(${this.#name}, ${WAIT}) as taken`
    const { rows } = await query.execute(db)
    if (Number(rows[0]?.taken) === 1) return
    throw new LockedError(new Error(`The lock "${this.#name}" is held by another session`), true)
  }

  override async releaseMigrationLock(db: Kysely<unknown>): Promise<void> {
    await sql`select release_lock(${this.#name})`.execute(db)
  }
}
