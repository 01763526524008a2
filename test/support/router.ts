/** The type of the router and its encoding, which the service shares with its clients. */

export { transformer } from '../../client/src/encoding.ts'
export type { AppRouter } from '../../src/petstore/router.ts'
