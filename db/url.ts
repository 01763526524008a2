/** What a DATABASE_URL says, without any of the drivers. */

/** Ends the URL of an embedded database that is to be made, with its folder, where it is missing. */
export const CREATE = '?create'

/** Which engine a DATABASE_URL names, and its address in words, without the password. */
export function describeUrl(databaseUrl: string): {
  engine: 'mysql' | 'sqlite'
  address: string
} {
  if (databaseUrl.startsWith('sqlite:')) {
    const end = databaseUrl.endsWith(CREATE) ? -CREATE.length : undefined
    return { engine: 'sqlite', address: databaseUrl.slice('sqlite:'.length, end) }
  }
  const { host, pathname } = new URL(databaseUrl)
  return { engine: 'mysql', address: host + pathname }
}
