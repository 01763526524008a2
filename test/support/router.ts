/** The router's type and its encoding, for tests: what the service shares with its clients. */

export { transformer } from '../../client/src/encoding.ts'
export type { AppRouter } from '../../src/petstore/router.ts'
