/** How a SQLite file is opened. */
import { closeSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { MissingDatabaseError } from '../../errors.ts'
import { withReason } from './errors.ts'
import { refuseLeftovers } from './leftovers.ts'

/**
 * Opens a file, which is created with its folder if it is missing and `mayCreate`. Throws BrokenDatabaseError if
 * what lies there would cost data, MissingDatabaseError, DatabaseUnavailableError, and the errors of node:sqlite and the file system.
 */
export function openFile(path: string, mayCreate: boolean): DatabaseSync {
  if (mayCreate) mkdirSync(dirname(path), { recursive: true })
  else if (!statSync(path, { throwIfNoEntry: false })) {
    // A typing error in the path must not create an empty database.
    throw new MissingDatabaseError(
      'the file does not exist; a start with ?create at the end of the URL creates it',
    )
  }
  refuseLeftovers(path)
  // Only the owner may read the file. SQLite creates its other files with the same mode.
  closeSync(openSync(path, 'a', 0o600))
  const database = new DatabaseSync(path, { readBigInts: true, timeout: 0 })
  try {
    // FULL: a commit survives a power failure (https://sqlite.org/pragma.html#pragma_synchronous). The
    // first statement creates the log.
    database.exec('pragma journal_mode=wal; pragma synchronous=full; select 1 from sqlite_schema')
    return database
  } catch (error) {
    database.close()
    throw withReason(error, path)
  }
}
