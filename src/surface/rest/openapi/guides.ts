/**
 * The guides of the OpenAPI document, as sections of its description, which every viewer shows; and
 * samples for the TypeScript client. The texts are in guides/; `{{name}}` there is a value from the
 * operations and their errors.
 */
import { readFileSync } from 'node:fs'
import type { OpenAPIObject } from 'trpc-to-openapi'
import { MAX_BODY } from '../../../config/limits.ts'
import { NAME } from '../../../config/product.ts'
import { methodNotSupported, notFound } from '../../../errors/problem.ts'
import type { Resources } from '../../../procedure/resources.ts'
import { shapesOf } from '../codec.ts'
import { deprecationHeaders } from '../links.ts'
import type { Operation } from '../operations.ts'
import { errorsOf, examplePath } from './responses.ts'

/** What a guide is made from. */
interface Subject {
  /** The document, with the responses and parameters of all operations. */
  document: OpenAPIObject
  operations: Operation[]
  /** The public URL of `/v1`. */
  baseUrl: string
  client: Resources['client']
}

/**
 * Adds the guides to the description of a document and, where there is a client, a sample of it to each
 * operation. Throws TypeError for an error code without advice, and errors of the file system.
 */
export function addGuides(subject: Subject): void {
  const { document, operations, client } = subject
  const texts = Object.entries(guides).flatMap(([name, valuesOf]) => {
    const values = valuesOf(subject)
    return values ? [filled(name, values)] : []
  })
  document.info.description = [document.info.description, ...texts].join('\n\n')
  if (!client) return
  for (const operation of operations) {
    const source = sampleOf(operation, subject, client)
    const samples = [{ lang: 'TypeScript', source }]
    Object.assign(objectOf(document, operation), { 'x-codeSamples': samples })
  }
}

/** Returns the part of a generated document that describes an operation. */
export function objectOf({ paths }: OpenAPIObject, { path, method }: Operation) {
  const object = paths?.[path]?.[method.toLowerCase() as 'get']
  if (!object) throw new TypeError(`${method} ${path} is missing in the generated document`)
  return object
}

type Values = Record<string, unknown>

/** Returns the text of a guide with these values, without the lines whose value is undefined. */
function filled(name: string, values: Values): string {
  const text = readFileSync(new URL(`guides/${name}.md`, import.meta.url), 'utf8').trimEnd()
  for (const key of Object.keys(values)) {
    if (!text.includes(`{{${key}}}`)) throw new TypeError(`guides/${name}.md needs {{${key}}}`)
  }
  const isComplete = (line: string) =>
    [...line.matchAll(PLACEHOLDER)].every(([, key = '']) => values[key] !== undefined)
  const lines = text.split('\n').filter(isComplete)
  return lines.join('\n').replaceAll(PLACEHOLDER, (_, key: string) => String(values[key]))
}

const PLACEHOLDER = /\{\{(\w+)\}\}/g

/** Returns operations as text, such as "`GET /pets` and `POST /pets`". */
const named = (operations: Operation[], type: Intl.ListFormatType = 'conjunction'): string =>
  new Intl.ListFormat('en-GB', { type }).format(
    operations.map(({ method, path }) => `\`${method} ${path}\``),
  )

/** The values of each guide, by the name of its file; undefined for an API that does not need it. */
const guides: Record<string, (subject: Subject) => Values | undefined> = {
  typescript(subject) {
    const { operations, client } = subject
    const [operation] = operations
    if (!client || !operation) return undefined
    // Of a module `@scope/name/client`, the package is `@scope/name`.
    const [name] = /^(@[^/]+\/)?[^/]+/.exec(client.module) ?? []
    return { package: name, sample: sampleOf(operation, subject, client) }
  },

  paging({ document, operations, baseUrl }) {
    const paged = operations.filter((operation) => operation.paged)
    const [first] = paged
    if (!first) return undefined
    const { default: usual, maximum } = parametersOf(document, first).get('limit')?.schema ?? {}
    const verb = paged.length > 1 ? 'return' : 'returns'
    const url = baseUrl + examplePath(first.path)
    return { operations: `${named(paged)} ${verb}`, usual, maximum, url }
  },

  errors({ operations }) {
    const all = [
      ...operations.flatMap(errorsOf).flatMap(({ errors }) => errors),
      // The errors of URLs that no operation has.
      notFound(),
      methodNotSupported('GET', ''),
    ].toSorted((one, other) => one.status - other.status)
    const statuses = [...Map.groupBy(all, ({ code }) => code)].map(([code, errors]) => [
      code,
      [...new Set(errors.map(({ status }) => status))].join(', '),
    ])
    const example = { code: 'BAD_REQUEST', message: operations[0]?.badRequest, status: 400 }
    return {
      ...Object.fromEntries(statuses),
      maxBody: MAX_BODY,
      example: JSON.stringify(example, undefined, 2),
    }
  },

  idempotency({ document, operations, baseUrl, client }) {
    const repeatable = operations.filter(({ takesKey }) => takesKey)
    const [first] = repeatable
    if (!first) return undefined
    const { method, path, exampleInput } = first
    const body = exampleInput && [
      '',
      `-H 'Content-Type: application/json'`,
      // A shell has no escape within apostrophes.
      `--data-raw '${JSON.stringify(exampleInput).replaceAll("'", "'\\''")}'`,
    ]
    return {
      operations: named(repeatable, 'disjunction'),
      inClient: client
        ? ' In the TypeScript client it is `{ context: { idempotencyKey } }`, the second argument of the call.'
        : '',
      method,
      url: baseUrl + examplePath(path),
      key: parametersOf(document, first).get('Idempotency-Key')?.schema.examples?.[0],
      body: body?.join(' \\\n  ') ?? '',
    }
  },

  int64: ({ document }) => (JSON.stringify(document).includes('"format":"int64"') ? {} : undefined),

  'rate-limits': () => ({}),

  deprecation({ operations, baseUrl }) {
    const day = (date: Date) => date.toISOString().slice(0, 10)
    const lines = operations.flatMap(({ method, path, deprecated }) =>
      deprecated
        ? `- \`${method} ${path}\` is deprecated since ${day(deprecated.since)} and removed on ${day(deprecated.sunset)}. Use \`${deprecated.successor}\` instead.`
        : [],
    )
    const first = operations.find(({ deprecated }) => deprecated)?.deprecated
    return first && { operations: lines.join('\n'), ...deprecationHeaders(first, baseUrl) }
  },
}

/** As much of a parameter as is read here. */
interface Parameter {
  name: string
  required?: boolean
  schema: ParameterSchema
}

interface ParameterSchema {
  $ref?: string
  default?: unknown
  minimum?: unknown
  maximum?: unknown
  examples?: unknown[]
  const?: unknown
  enum?: unknown[]
  items?: ParameterSchema
}

function parametersOf(document: OpenAPIObject, operation: Operation): Map<string, Parameter> {
  // The document writes every parameter inline, without references.
  const parameters = (objectOf(document, operation).parameters ?? []) as Parameter[]
  return new Map(parameters.map((parameter) => [parameter.name, parameter]))
}

/** A call of the operation by the TypeScript client, as a program. */
function sampleOf(
  operation: Operation,
  { document, baseUrl }: Subject,
  client: NonNullable<Resources['client']>,
): string {
  const { name, type, example } = operation
  const call = type === 'query' ? 'query' : 'mutate'
  const input = inputOf(document, operation)
  const given = Object.keys(input).length > 0 ? literal(input) : ''
  return `import { ${client.create} } from '${client.module}'

const ${NAME} = ${client.create}({
  url: '${baseUrl.replace(/\/v1$/i, '/trpc')}',
  apiKey: '<API_KEY>',
})
${example === undefined ? '' : 'const answer = '}await ${NAME}.${name}.${call}(${given})`
}

/** An input of the procedure: its examples, as values of JavaScript. */
function inputOf(document: OpenAPIObject, operation: Operation): Record<string, unknown> {
  const { input, pathParameters, queryParameters, sampleInput } = operation
  const [shape = {}] = shapesOf(input, 'input')
  const parameters = parametersOf(document, operation)
  const readers = [...pathParameters, ...queryParameters]
  const fields = readers.flatMap(([name, read]) => {
    const { required, schema = {} } = parameters.get(name) ?? {}
    const isLimit = name === 'limit' && schema.default !== undefined
    if (!required) return isLimit ? [[name, schema.default]] : []
    const bounds = [schema.minimum, schema.maximum].map(textOf)
    const values = [...textsOf(document, schema), ...TEXTS, ...bounds].map(read)
    return [[name, values.find((value) => shape[name]?.safeParse(value).success) ?? 'text']]
  })
  return { ...Object.fromEntries(fields), ...sampleInput }
}

/** Texts of parameters without examples, for each type. */
const TEXTS = ['text', '42', '1', '2026-01-02', '2026-01-02T03:04:05Z', 'true']

/** Returns the texts that a schema names, each for a whole parameter: its examples come first. */
function textsOf(document: OpenAPIObject, schema: ParameterSchema): (string | string[])[] {
  const { $ref = '', examples = [], const: only, enum: all = [], items } = schema
  const component = document.components?.schemas?.[$ref.slice($ref.lastIndexOf('/') + 1)]
  const texts = [...examples, only, ...all]
    .filter((value) => value !== undefined)
    .map((value) => (Array.isArray(value) ? value.map(textOf) : textOf(value)))
  const inner = [component, items].filter((part) => part !== undefined) as ParameterSchema[]
  return [...texts, ...inner.flatMap((part) => textsOf(document, part))]
}

/** A value of JSON as the text of a parameter; integers keep their digits. */
const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? '')

/** A value as JavaScript writes it. */
function literal(value: unknown): string {
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'string')
    return `'${JSON.stringify(value).slice(1, -1).replaceAll("'", "\\'").replaceAll('\\"', '"')}'`
  if (value instanceof Date) return `new Date('${value.toISOString()}')`
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`
  if (typeof value !== 'object' || value === null) return String(value)
  const fields = Object.entries(value).filter(([, field]) => field !== undefined)
  const key = (name: string) => (/^[a-z_$][\w$]*$/i.test(name) ? name : literal(name))
  return `{ ${fields.map(([name, field]) => `${key(name)}: ${literal(field)}`).join(', ')} }`
}
