/** Plain SQL on a separate connection to the database of the service. */
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { createConnection } from 'mysql2/promise'

type Row = Record<string, unknown>

export interface Sql extends AsyncDisposable {
  /** Runs one statement, with values for its `?`; integers of its rows are bigints. */
  (statement: string, values?: unknown[]): Promise<Row[]>
  /** Closes the connection and releases its locks. A second call does nothing. */
  close(): Promise<void>
}

/** Opens a connection to the database of a DATABASE_URL. */
export async function openSql(databaseUrl: string): Promise<Sql> {
  if (databaseUrl.startsWith('sqlite:')) {
    const database = new DatabaseSync(databaseUrl.slice('sqlite:'.length), {
      readBigInts: true,
      timeout: 5_000,
    })
    const run = async (statement: string, values: unknown[] = []) =>
      database.prepare(statement).all(...(values as SQLInputValue[])) as Row[]
    return closable(run, () => database.isOpen && database.close())
  }
  const connection = await createConnection({
    uri: databaseUrl,
    charset: 'utf8mb4_bin',
    supportBigNumbers: true,
    bigNumberStrings: true,
    typeCast: (field, next) => {
      if (field.type !== 'LONGLONG') return next()
      const text = field.string()
      return text === null ? null : BigInt(text)
    },
  })
  // The settings of the server are unknown: it may be that of TEST_DATABASE_URL.
  await connection.query(
    `set autocommit = 1, completion_type = 'NO_CHAIN', sql_mode = 'STRICT_ALL_TABLES',
     sql_select_limit = ${2n ** 64n - 1n}, names utf8mb4`,
  )
  const run = async (statement: string, values: unknown[] = []) => {
    const [rows] = await connection.query(statement, values)
    return Array.isArray(rows) ? (rows as Row[]) : []
  }
  return closable(run, () => connection.destroy())
}

/** With `await using` a failed test releases its locks, for which later tests would wait. */
function closable(
  run: (statement: string, values?: unknown[]) => Promise<Row[]>,
  end: () => void,
): Sql {
  const close = async () => end()
  return Object.assign(run, { close, [Symbol.asyncDispose]: close })
}
