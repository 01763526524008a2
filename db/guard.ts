/** Makes a driver of Kysely tell "not now" from "wrong query". */
import type { DatabaseConnection, Driver } from 'kysely'
import { DatabaseUnavailableError, isUnavailable } from './errors.ts'

/** The driver, with what only means that the database cannot be used thrown as DatabaseUnavailableError. */
export function guardDriver(driver: Driver): Driver {
  const init = driver.init.bind(driver)
  const acquire = driver.acquireConnection.bind(driver)
  const guarded = new WeakSet<DatabaseConnection>()
  driver.init = (options) => init(options).catch(rethrow)
  driver.acquireConnection = async (options) => {
    const connection = await acquire(options).catch((error) => {
      throw new DatabaseUnavailableError(error)
    })
    if (!guarded.has(connection)) guarded.add(guardConnection(connection))
    return connection
  }
  return driver
}

function guardConnection(connection: DatabaseConnection): DatabaseConnection {
  const execute = connection.executeQuery.bind(connection)
  connection.executeQuery = async (query, options) => {
    try {
      return await execute(query, options)
    } catch (error) {
      return rethrow(error)
    }
  }
  return connection
}

function rethrow(error: unknown): never {
  throw isUnavailable(error) ? new DatabaseUnavailableError(error) : error
}
