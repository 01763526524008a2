/** The client that TypeScript frontends import, from its source. */
export * from '../../client/src/client.ts'
