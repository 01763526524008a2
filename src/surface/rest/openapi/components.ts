/** The components of the OpenAPI document that do not depend on the operations. */
import { REQUEST_ID } from '../../../http/record.ts'

export const securitySchemes = {
  apiKey: {
    type: 'http',
    scheme: 'bearer',
    description:
      'A key that the operator gave you, sent as `Authorization: Bearer <API_KEY>`. A read-only key receives 403 from every operation that changes something.',
  },
} as const

const error = {
  code: {
    type: 'string',
    description:
      'Machine-readable error code. More codes may come: treat one that you do not know by its `status`.',
  },
  message: { type: 'string', description: 'Human-readable description.' },
  status: {
    type: 'integer',
    minimum: 400,
    maximum: 599,
    description: 'The HTTP status code.',
    format: 'int32',
  },
} as const

export const schemas = {
  Error: {
    type: 'object',
    properties: error,
    required: Object.keys(error),
    description: 'The body of every error.',
  },
} as const

const always = (description: string, schema: object = {}, example?: unknown) => ({
  description,
  required: true,
  schema: { type: 'string', ...schema },
  ...(example !== undefined && { example }),
})
const sometimes = (...header: Parameters<typeof always>) => ({
  ...always(...header),
  required: false,
})

export const headers = {
  Link: sometimes(
    'Related URLs (RFC 8288): `rel="next"` is the next page, if there is one; `rel="successor-version"` replaces a deprecated operation.',
    {},
    '<https://api.example.com/v1/items?limit=20&cursor=7>; rel="next"',
  ),
  Location: always(
    'The URL of the created resource.',
    { format: 'uri' },
    'https://api.example.com/v1/items/7',
  ),
  Deprecation: always(
    'The date of the deprecation (RFC 9745).',
    { pattern: '^@[0-9]+$' },
    '@1795132800',
  ),
  Sunset: always('The date of the removal (RFC 8594).', {}, 'Thu, 05 Dec 2030 00:00:00 GMT'),
  'WWW-Authenticate': always(
    'The challenge (RFC 6750): no API key, an invalid one, or one that may only read.',
    {},
    'Bearer error="invalid_token"',
  ),
  'Retry-After': always(
    'Seconds after which to try again.',
    { type: 'integer', format: 'int32', minimum: 0 },
    5,
  ),
  'X-Request-Id': always(
    'The id of the request: its own valid `X-Request-Id`, or a new one. Mention it when you report an error.',
    { pattern: REQUEST_ID.source },
    '0f2d4c3a-6a3e-4b0e-9a55-0b8f5f1f0f4e',
  ),
  'RateLimit-Policy': sometimes(
    'The limit of calls (`q`) in a number of seconds (`w`), if the operator has set one (draft-ietf-httpapi-ratelimit-headers-08).',
    {},
    '"60-in-1min"; q=60; w=60',
  ),
  RateLimit: sometimes(
    'The remaining calls (`r`), and the seconds until the limit resets (`t`), if the operator has set one.',
    {},
    '"60-in-1min"; r=59; t=60',
  ),
}
