/**
 * Traces with OpenTelemetry's own instrumentation of HTTP and mysql2, for `node --import`. The section
 * Traces of docs/operating.md has the packages and the command. OpenTelemetry's variables apply.
 */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http'
import { MySQL2Instrumentation } from '@opentelemetry/instrumentation-mysql2'
import { NodeSDK } from '@opentelemetry/sdk-node'

if (existsSync('.env')) process.loadEnvFile()
// It would take precedence over a service.name among the attributes.
if (!/(^|,)\s*service\.name\s*=/.test(process.env.OTEL_RESOURCE_ATTRIBUTES)) {
  process.env.OTEL_SERVICE_NAME ||= 'petstore'
}
// The service has metrics and a log of its own.
process.env.OTEL_METRICS_EXPORTER ??= 'none'
process.env.OTEL_LOGS_EXPORTER ??= 'none'

const http = new HttpInstrumentation({
  ignoreIncomingRequestHook: ({ url }) => ['/healthz', '/readyz', '/metrics'].includes(url),
  // The inputs of tRPC are in the query.
  startIncomingSpanHook: () => ({ 'url.query': undefined }),
  disableOutgoingRequestInstrumentation: true,
})
// By default a statement contains its values.
const mysql = new MySQL2Instrumentation({ maskStatement: true, maskStatementHook: (sql) => sql })
new NodeSDK({ instrumentations: [http, mysql] }).start()

// The instrumentation changes these modules when they are required. Imports then get the same modules.
const require = createRequire(import.meta.url)
require('node:http')
require('mysql2')
