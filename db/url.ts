/** The parts of a DATABASE_URL, without loading a driver. */

/** Ends the URL of an embedded database that is to be made, with its folder, where it is missing. */
export const CREATE = '?create'

/** Returns the engine of a DATABASE_URL, and where the database is: host and name, or the file. No password. */
export function describeUrl(databaseUrl: string): {
  engine: 'mysql' | 'sqlite'
  location: string
} {
  if (databaseUrl.startsWith('sqlite:')) {
    const end = databaseUrl.endsWith(CREATE) ? -CREATE.length : undefined
    return { engine: 'sqlite', location: databaseUrl.slice('sqlite:'.length, end) }
  }
  const { host, pathname } = new URL(databaseUrl)
  return { engine: 'mysql', location: host + pathname }
}
