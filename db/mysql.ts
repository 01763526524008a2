/** MySQL, and what speaks its protocol, through mysql2 behind Kysely's MysqlDialect. */
import { CompiledQuery, type DatabaseConnection, type Driver, MysqlDialect } from 'kysely'
import { createPool, type TypeCast } from 'mysql2'
import { guardDriver } from './guard.ts'

/** Milliseconds until a server that does not answer counts as unreachable. */
const CONNECT_TIMEOUT = 5_000

/** A dialect on a pool of connections to the server of `url` (mysql://user:password@host:port/database). */
export function mysqlDialect(url: string): MysqlDialect {
  return new GuardedDialect({
    pool: async () =>
      createPool({
        uri: url,
        charset: 'utf8mb4_bin',
        connectTimeout: CONNECT_TIMEOUT,
        supportBigNumbers: true,
        bigNumberStrings: true,
        typeCast: bigintCast,
      }),
    onCreateConnection,
  })
}

const bigintCast: TypeCast = (field, next) => {
  if (field.type !== 'LONGLONG') return next()
  const text = field.string()
  return text === null ? null : BigInt(text)
}

// mysql2 escapes values into the text of a statement with backslashes, which the mode
// NO_BACKSLASH_ESCAPES would make unsafe; without a strict mode MySQL truncates in silence.
async function onCreateConnection(connection: DatabaseConnection) {
  await connection.executeQuery(
    CompiledQuery.raw(`set session sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'`),
  )
}

class GuardedDialect extends MysqlDialect {
  override createDriver(): Driver {
    return guardDriver(super.createDriver())
  }
}
