/** The client that TypeScript frontends import, from where its source is. */
export * from '../../client/src/client.ts'
