/** Traces by deploy/tracing.mjs and the packages that docs/operating.md names, with a collector. */
import { once } from 'node:events'
import { copyFileSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { json } from 'node:stream/consumers'
import { expect, onTestFinished } from 'vitest'
import { newDatabase } from '../support/database.ts'
import { readRoot } from '../support/image.ts'
import { startMysql } from '../support/mysql.ts'
import { runServer } from '../support/process.ts'
import { keyedFetch } from '../support/rest.ts'
import { createKey } from '../support/service.ts'
import { npmTrial } from './trial.ts'

interface Span {
  name: string
  traceId: string
  spanId: string
  parentSpanId?: string
  attributes: { key: string; value: { stringValue?: string } }[]
}

const attribute = (span: Pick<Span, 'attributes'> | undefined, name: string) =>
  span?.attributes.find(({ key }) => key === name)?.value.stringValue

/** Starts a collector, which receives spans as JSON (https://opentelemetry.io/docs/specs/otlp/#otlphttp). */
async function startCollector() {
  const spans: Span[] = []
  const names = new Set<string | undefined>()
  const server = createServer(async (req, res) => {
    const body = (await json(req)) as {
      resourceSpans: { resource: Pick<Span, 'attributes'>; scopeSpans: { spans: Span[] }[] }[]
    }
    if (req.url === '/traces') {
      for (const { resource, scopeSpans } of body.resourceSpans) {
        names.add(attribute(resource, 'service.name'))
        spans.push(...scopeSpans.flatMap(({ spans }) => spans))
      }
    }
    res.end('{}')
  }).listen(0, '127.0.0.1')
  onTestFinished(() => server.close().closeAllConnections())
  await once(server, 'listening')
  return { spans, names, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/traces` }
}

const [, packages = ''] = /^npm install --no-save (.+)$/m.exec(readRoot('docs/operating.md')) ?? []

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const CALLER = 'b7ad6b7169203331'

npmTrial('OpenTelemetry for Node', packages.split(' '), async ({ folder }) => {
  // As the operator installs them: beside the service's own packages.
  const file = path.join(folder, 'tracing.mjs')
  copyFileSync('deploy/tracing.mjs', file)
  symlinkSync(path.resolve('node_modules/mysql2'), path.join(folder, 'node_modules/mysql2'))
  const mysql = await startMysql()
  onTestFinished(mysql.remove)
  const database = await newDatabase(mysql.url)
  onTestFinished(database.remove)
  const key = await createKey(database.url)
  const collector = await startCollector()
  const server = await runServer({
    DATABASE_URL: database.url,
    NODE_OPTIONS: `--import=${file}`,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test,service.name=shop-b',
  })
  onTestFinished(async () => void (await server.end()))
  const call = keyedFetch(server.origin, key)
  const headers = { traceparent: `00-${TRACE}-${CALLER}-01`, 'content-type': 'application/json' }
  const creation = { method: 'POST', body: '{"name":"Tracy","categoryId":1}', headers }
  expect((await call('/v1/pets', creation)).status).toBe(201)
  expect((await call(`/v1/pets/${key}`, { headers })).status).toBe(400)
  expect((await call('/trpc/listPets,getPet?batch=1&input={}', { headers })).status).toBe(207)
  expect((await call('/readyz')).status).toBe(200)
  expect(await server.end('SIGTERM')).toBe(0)

  expect(collector.names).toEqual(new Set(['shop-b']))
  const named = (name: string) => collector.spans.filter((span) => span.name === name)
  const [create] = named('createPet')
  expect(create).toMatchObject({ traceId: TRACE, parentSpanId: CALLER })
  expect(attribute(create, 'http.route')).toBe('/v1/pets')
  const line = server.entries().find(({ operation }) => operation === 'createPet')
  expect(line).toMatchObject({
    traceId: TRACE,
    spanId: create?.spanId,
    requestId: attribute(create, 'petstore.request_id'),
  })
  const inserts = named('insert').filter(({ parentSpanId }) => parentSpanId === create?.spanId)
  expect(inserts.map((span) => attribute(span, 'db.query.text'))).toContainEqual(
    expect.stringMatching(/^insert into `pets` .+ values \(\?, \?, \?\)$/),
  )
  expect(attribute(create, 'url.path')).toBe('/v1/pets')
  expect(named('batch')).toHaveLength(1)
  expect(JSON.stringify(collector.spans)).not.toMatch(/Tracy|readyz|input=|petstore_\w{30}/)
  return 'requests, and statements without values, are spans of one trace'
})
