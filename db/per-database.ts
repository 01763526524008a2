/** What is made once for each database, and is the same inside and outside its transactions. */
import type { Database } from './tables.ts'

/** A function that returns what `make` made for a database, which it calls once for each. */
export function perDatabase<Made>(make: (db: Database) => Made): (db: Database) => Made {
  const made = new WeakMap<object, Made>()
  return (db) => {
    // The adapter is the one object that a database and its transactions share.
    const { adapter } = db.getExecutor()
    let known = made.get(adapter)
    if (known === undefined) {
      known = make(db)
      made.set(adapter, known)
    }
    return known
  }
}
