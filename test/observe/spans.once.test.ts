/** What the span of a request says, without OpenTelemetry's SDK, which test/world has. */
import { context, ROOT_CONTEXT, trace } from '@opentelemetry/api'
import { expect, onTestFinished, test } from 'vitest'
import { serviceForFile } from '../support/service.ts'

const { fetch, key, logged } = await serviceForFile()

test('a span has the operation, its route, and the id and path of the log line, without the API key', async () => {
  const said: Record<string, unknown> = {}
  const say = (name: string, value: unknown) => {
    said[name] = value
    return span
  }
  const ids = { traceId: 'c0ffee'.padEnd(32, '0'), spanId: 'beef'.padEnd(16, '0') }
  const span = Object.assign(trace.wrapSpanContext({ ...ids, traceFlags: 1 }), {
    setAttribute: say,
    updateName: (name: string) => say('name', name),
  })
  const active = () => trace.setSpan(ROOT_CONTEXT, span)
  context.setGlobalContextManager({ active, disable() {} } as never)
  onTestFinished(() => context.disable())
  const { headers } = await fetch(`/v1/pets/${key}`)
  const requestId = headers.get('x-request-id')
  expect(said).toEqual({
    name: 'getPet',
    'http.route': '/v1/pets/{petId}',
    'petstore.request_id': requestId,
    'url.path': '/v1/pets/petstore_…',
  })
  await expect
    .poll(() => logged.map((line) => JSON.parse(line)))
    .toContainEqual(expect.objectContaining({ ...ids, requestId, msg: 'request' }))
})
