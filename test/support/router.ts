/** The router's type and its encoding, for tests: what the service shares with its clients. */
export type { AppRouter } from '../../src/router.ts'
export { transformer } from '../../client/src/encoding.ts'
