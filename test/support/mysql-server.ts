/** The server for the tests of the project `mysql`: that of TEST_DATABASE_URL, or a new one. */
import type { TestProject } from 'vitest/node'
import { startMysql } from './mysql.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The URL of a server on which the tests may create databases; empty for the embedded engine. */
    mysqlUrl: string
  }
}

export default async function setup(
  project: TestProject,
): Promise<(() => Promise<void>) | undefined> {
  const given = process.env.TEST_DATABASE_URL
  if (given) {
    project.provide('mysqlUrl', given)
    return undefined
  }
  const server = await startMysql()
  project.provide('mysqlUrl', server.url)
  return () => server.remove()
}
