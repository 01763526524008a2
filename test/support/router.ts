/** The type of the router and its encoding, which the service shares with its clients. */

export { transformer } from '../../src/wire/encoding.ts'

import type { appRouter } from '../../src/petstore/resources.ts'

export type AppRouter = typeof appRouter
