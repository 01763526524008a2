/** The server by itself: its default timeouts, and an app that fails in the middle of a response. */
import { once } from 'node:events'
import express from 'express'
import { expect, onTestFinished, test } from 'vitest'
import { createHttpServer } from '../../../src/http/server/server.ts'
import { freePort } from '../../support/mysql.ts'

test('clients have 10 seconds for the headers, 30 for a request and 65 for the next one', () => {
  expect(createHttpServer(express(), () => '')).toMatchObject({
    headersTimeout: 10_000,
    requestTimeout: 30_000,
    keepAliveTimeout: 65_000,
    timeout: 65_000,
    connectionsCheckingInterval: 1_000,
  })
})

test('an error in the middle of a response closes the connection', async () => {
  const app = express()
  app.get('/', (_req, res) => {
    res.write('the beginning')
    throw new Error('boom')
  })
  const port = await freePort()
  const server = createHttpServer(app, () => '').listen(port, '127.0.0.1')
  onTestFinished(() => server.closeAllConnections())
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const signal = AbortSignal.timeout(10_000)
  const reading = fetch(`http://127.0.0.1:${port}`, { signal }).then((answer) => answer.text())
  await expect(reading).rejects.toMatchObject({ name: 'TypeError' }) // the timeout is another
})
