/** The parts of a DATABASE_URL, without a driver. */

/** The end of an SQLite URL with which the service creates a missing file and its folder. */
export const CREATE = '?create'

/** Returns the engine of a DATABASE_URL, and the host and name, or the file. No password. */
export function describeUrl(databaseUrl: string): { engine: 'mysql' | 'sqlite'; location: string } {
  if (databaseUrl.startsWith('sqlite:')) {
    const end = databaseUrl.endsWith(CREATE) ? -CREATE.length : undefined
    return { engine: 'sqlite', location: databaseUrl.slice('sqlite:'.length, end) }
  }
  const { host, pathname } = new URL(databaseUrl)
  return { engine: 'mysql', location: host + pathname }
}
