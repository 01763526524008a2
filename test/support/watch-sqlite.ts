/**
 * Preloaded into a process of the service. Writes each statement on the embedded database to stderr,
 * with the settings of its connection, which are not visible from outside the process.
 * WATCHED_PRAGMA is an optional setting for every connection.
 */
import { writeSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

const { prepare } = DatabaseSync.prototype
const known = new WeakSet<DatabaseSync>()

DatabaseSync.prototype.prepare = function (text, ...more) {
  if (!known.has(this)) {
    known.add(this)
    const { WATCHED_PRAGMA } = process.env
    if (WATCHED_PRAGMA) this.exec(`pragma ${WATCHED_PRAGMA}`)
  }
  const settings = ['journal_mode', 'synchronous', 'busy_timeout'].map((name) =>
    Object.values(prepare.call(this, `pragma ${name}`).get() ?? {}).join(),
  )
  writeSync(2, `sqlite [${settings}] ${text}\n`)
  return prepare.call(this, text, ...more)
}
