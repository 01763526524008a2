/** `npm run storefront`: the service, and beside it the page of this example, until they are ended. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'vite'
import { loadConfig } from '../../src/config.ts'

const PAGE_PORT = 5173

process.env.VITE_PETSTORE_URL = `http://localhost:${loadConfig().port}/trpc`
const page = await createServer({
  root: import.meta.dirname,
  server: { port: PAGE_PORT, strictPort: true },
})
await page.listen()
const service = spawn(process.execPath, ['src/main.ts'], {
  stdio: 'inherit',
  env: { ...process.env, CORS_ORIGINS: `http://localhost:${PAGE_PORT}` },
})
// The service, which stops in order, ends this too. A terminal sends Ctrl-C to both; a second signal
// would make the service stop at once.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => service.kill())
console.log(`The storefront is at http://localhost:${PAGE_PORT}; it asks for an API key.\n`)

const [code] = await once(service, 'exit')
await page.close()
process.exitCode = code ?? 1
