/** The statements that a database executes, as the engine records them. */
import { StatementSync } from 'node:sqlite'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { engine } from './database.ts'

export interface Statements {
  /** The statements so far that match, in order; those of MySQL with their values. */
  like(pattern: RegExp): Promise<string[]>
  close(): Promise<void>
}

/**
 * Watches the statements of all later connections to a database, including those of the test. It reads
 * the general log of MySQL, or the statements that this process runs on node:sqlite.
 */
export async function watchStatements(databaseUrl: string): Promise<Statements> {
  return engine === 'mysql' ? await watchMysql(databaseUrl) : watchSqlite()
}

async function watchMysql(databaseUrl: string): Promise<Statements> {
  const url = new URL(databaseUrl)
  const name = url.pathname.slice(1)
  url.pathname = ''
  const admin = await createConnection(url.href)
  // It stays on, because other tests may read it.
  await admin.query("set global log_output = 'TABLE'")
  await admin.query('set global general_log = on')
  return {
    async like(pattern) {
      // Not by a subquery: the log has no index, and MariaDB 11 reads it once for each of its rows.
      const [threads] = await admin.query<RowDataPacket[]>(
        `select distinct thread_id from mysql.general_log
        where command_type = 'Connect' and argument like ?`,
        [`% on ${name}%`],
      )
      if (threads.length === 0) return []
      const [rows] = await admin.query<RowDataPacket[]>(
        `select convert(argument using utf8mb4) as text from mysql.general_log
        where command_type in ('Query', 'Execute') and thread_id in (?) order by event_time`,
        [threads.map(({ thread_id }) => thread_id)],
      )
      return rows.map(({ text }) => text).filter((text) => pattern.test(text))
    },
    close: async () => admin.destroy(),
  }
}

function watchSqlite(): Statements {
  const texts: string[] = []
  const { prototype } = StatementSync
  const methods = ['all', 'get', 'iterate', 'run'] as const
  const originals = methods.map((method) => [method, prototype[method]] as const)
  for (const [method, original] of originals) {
    prototype[method] = function (this: StatementSync, ...values: never[]) {
      const result = Reflect.apply(original, this, values)
      // Its placeholders stay, because a plan for values may be better than that of the statement.
      texts.push(this.sourceSQL)
      return result
    }
  }
  return {
    like: async (pattern) => texts.filter((text) => pattern.test(text)),
    async close() {
      for (const [method, original] of originals) Object.assign(prototype, { [method]: original })
    },
  }
}
