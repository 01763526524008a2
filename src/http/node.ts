/**
 * The module `node:http`, loaded lazily
 * (https://nodejs.org/api/process.html#processgetbuiltinmoduleid). An `import` evaluates all its
 * exports. One of them, `WebSocket`, loads an HTTP client: 9 MB, and a tenth of the start's CPU time.
 */
export const http = process.getBuiltinModule('node:http')
