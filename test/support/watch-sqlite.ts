/**
 * Loaded into a process of the service, beside its own code: tells on stderr what is asked of the
 * embedded database, and with which settings, which nobody outside of the process can see.
 * WATCHED_PRAGMA, where it is set, is a setting that every connection gets.
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
