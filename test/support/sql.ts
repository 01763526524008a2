/** A database seen from beside the service: plain SQL over a connection of its own. */
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { createConnection } from 'mysql2/promise'

type Row = Record<string, unknown>

export interface Sql extends AsyncDisposable {
  /** Runs one statement, with values for its `?`; integers of its rows are bigints. */
  (statement: string, values?: unknown[]): Promise<Row[]>
  /** Lets go of whatever it holds; the second time it does nothing. */
  close(): Promise<void>
}

/** A connection to the database of a DATABASE_URL, apart from those of the service. */
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
  // Whatever the server's own settings are: it may be one of TEST_DATABASE_URL.
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

/** With `await using` a test that fails leaves no lock behind for which the next ones would wait. */
function closable(
  run: (statement: string, values?: unknown[]) => Promise<Row[]>,
  end: () => void,
): Sql {
  const close = async () => end()
  return Object.assign(run, { close, [Symbol.asyncDispose]: close })
}
