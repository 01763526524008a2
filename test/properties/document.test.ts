/** The served document is exact: valid requests are accepted, and all others are 400. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Answer } from '../support/rest.ts'
import { type Service, serviceForFile } from '../support/service.ts'
import { teamResources } from '../teams/context.ts'
import { up, visitResources } from '../visits/router.ts'
import { hold, TIMEOUT, tellSeed } from './cases.ts'
import { kinds } from './kinds.ts'
import { invalid, type Schema, type Schemas, valid } from './schemas.ts'
import { chooser, spelledJson, spelledQuery, spelling } from './spelling.ts'

interface Parameter {
  name: string
  in: 'query' | 'path' | 'header'
  required?: boolean
  schema: Schema
  example?: string
}

interface Operation {
  operationId: string
  parameters?: Parameter[] | undefined
  requestBody?: { required: boolean; content: Record<'application/json', { schema: Schema }> }
  /** The responses by status. */
  responses: Record<string, { content?: Record<'application/json', { examples?: Examples }> }>
}

/** The errors of a status by name. */
type Examples = Record<string, { value: { message: string } }>

interface Document {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Schemas }
}

tellSeed()
/** A service and its document, whose form has its own tests. */
const withDocument = async (service: Service) => {
  const { body } = await service.rest('GET', '/openapi.json')
  return { service, document: body as Document }
}
type Served = Awaited<ReturnType<typeof withDocument>>
const served: [string, Served][] = [
  ['the petstore', await withDocument(await serviceForFile())],
  ['teams', await withDocument(await serviceForFile({}, { resources: teamResources }))],
  ['all kinds of fields', await withDocument(await serviceForFile({}, { resources: kinds }))],
  [
    'visits',
    await withDocument(await serviceForFile({}, { resources: visitResources, prepare: up })),
  ],
]

/** A request of the document: the strings of the parameters by name, and the value of the body. */
interface Request {
  parameters: Record<string, string>
  body?: unknown
}

/** One operation of the document. */
interface Described {
  method: string
  path: string
  operation: Operation
}

const described = ({ document }: Served): Described[] =>
  Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method, path, operation })),
  )

const isRequired = (parameter: Parameter) => parameter.required ?? false

/** Values that a parameter can have, as strings. */
function texts(
  values: fc.Arbitrary<unknown>,
  { in: place, schema }: Parameter,
): fc.Arbitrary<string> {
  const written = values
    // In a URL and in a header every value is a string: "7" is an integer there, and 7 is a string.
    .filter((value) =>
      schema.type === 'integer'
        ? typeof value !== 'object' && !(typeof value === 'string' && /^-?\d+$/.test(value))
        : typeof value === 'string'
          ? schema.type !== 'boolean' || !/^(true|false)$/.test(value)
          : schema.type === 'boolean' && typeof value === 'boolean',
    )
    .map(String)
  if (place === 'query') return written
  // A header has Latin-1 without control characters and outer spaces; "." is not a path segment.
  return place === 'header'
    ? written.filter((text) => /^[ -~\u00a1-\u00ff]*$/.test(text) && text.trim() === text)
    : written.filter((text) => !/^\.{0,2}$/.test(text))
}

/** What an Idempotency-Key is not: a rule that its description has in words, because the pattern would need a lookahead, which Go lacks. */
const MISSING = /^"?(undefined|null|NaN|None)"?$/

/** Whether this is an Idempotency-Key that is valid by its description, though not by its pattern. */
const isWiderKey = (text: string, { name }: Parameter) =>
  name === 'Idempotency-Key' && /^"([ !#-[\]-~]|\\["\\]){1,255}"$/.test(text)

/** Whether a middleware reads it, which alone knows its values: tests send the example. */
const isOfMiddleware = ({ in: place, example }: Parameter) =>
  place === 'header' && example !== undefined

function validRequest(
  { parameters = [], requestBody }: Operation,
  schemas: Schemas,
): fc.Arbitrary<Request> {
  const fields = parameters.map((parameter): [string, fc.Arbitrary<string>] => [
    parameter.name,
    isOfMiddleware(parameter)
      ? fc.constant(String(parameter.example))
      : texts(valid(parameter.schema, schemas), parameter).filter(
          (text) => parameter.name !== 'Idempotency-Key' || !MISSING.test(text),
        ),
  ])
  const requiredKeys = parameters.filter(isRequired).map(({ name }) => name)
  return fc.record(
    {
      parameters: fc.record(Object.fromEntries(fields), { requiredKeys }),
      ...(requestBody && { body: valid(requestBody.content['application/json'].schema, schemas) }),
    },
    { noNullPrototype: true },
  ) as fc.Arbitrary<Request> // optional parameters are absent, not undefined
}

/** A request with one invalid part: a parameter or the body; undefined for an operation that has neither. */
function invalidRequest(operation: Operation, schemas: Schemas): fc.Arbitrary<Request> | undefined {
  const { parameters = [], requestBody } = operation
  const whole = validRequest(operation, schemas)
  const checked = parameters.filter((parameter) => !isOfMiddleware(parameter))
  const spoilt = checked.map((parameter) =>
    fc
      .tuple(
        whole,
        texts(invalid(parameter.schema, schemas), parameter).filter(
          (text) => !isWiderKey(text, parameter),
        ),
      )
      .map(([request, text]) => ({
        ...request,
        parameters: { ...request.parameters, [parameter.name]: text },
      })),
  )
  if (!requestBody) return spoilt.length > 0 ? fc.oneof(...spoilt) : undefined
  const bodies = invalid(requestBody.content['application/json'].schema, schemas)
  const spoiltBody = fc.tuple(whole, bodies).map(([request, body]) => ({ ...request, body }))
  return fc.oneof(...spoilt, { arbitrary: spoiltBody, weight: 2 })
}

function send(
  service: Service,
  { method, path, operation }: Described,
  request: Request,
  choices: number[],
) {
  const choose = chooser(choices)
  const placed = (place: string) =>
    (operation.parameters ?? []).flatMap((parameter): [string, string][] => {
      const text = request.parameters[parameter.name]
      return parameter.in === place && text !== undefined ? [[parameter.name, text]] : []
    })
  const filled = placed('path').reduce(
    (template, [name, text]) => template.replace(`{${name}}`, () => encodeURIComponent(text)),
    path,
  )
  const query = spelledQuery(placed('query'), choose)
  return service.rest(method.toUpperCase(), query === '' ? filled : `${filled}?${query}`, {
    headers: Object.fromEntries(placed('header')),
    ...('body' in request && { body: spelledJson(request.body, choose) }),
  })
}

async function holdForEach(
  of: Served,
  requestOf: typeof invalidRequest,
  check: (answer: Answer, operation: Operation) => void,
): Promise<void> {
  for (const one of described(of)) {
    const requests = requestOf(one.operation, of.document.components.schemas)
    if (!requests) continue
    const property = fc.asyncProperty(requests, spelling, async (request, choices) => {
      check(await send(of.service, one, request, choices), one.operation)
    })
    await hold(property, 0.25)
  }
}

/** The index of an item: a rule in a list has that of the first one. */
const INDEX = /\.\d+\b/g

/** Whether a request breaks nothing but rules that JSON Schema cannot say: the document has their messages. */
function breaksRules({ status, body }: Answer, { responses }: Operation): boolean {
  if (status !== 400) return false
  const examples = responses[400]?.content?.['application/json'].examples ?? {}
  // The first example is of a field, and those of rules have numbers.
  const rules = Object.entries(examples).filter(([name]) => /^BAD_REQUEST_\d+$/.test(name))
  const known = rules.map(([, { value }]) => value.message)
  const messages = (body as { message: string }).message.split('; ')
  return messages.every((one) => known.includes(one.replaceAll(INDEX, '.0')))
}

test.for(served)('valid requests of %s are accepted', { timeout: TIMEOUT }, async ([, of]) => {
  // 404: the resource does not exist. 409: a unique value is taken. 422: one Idempotency-Key has two bodies.
  await holdForEach(of, validRequest, (answer, operation) => {
    const { status, text } = answer
    expect(Object.keys(operation.responses), text).toContain(String(status))
    if (!breaksRules(answer, operation))
      expect([200, 201, 204, 404, 409, 422], text).toContain(status)
  })
})

test.for(served)('invalid requests of %s are 400', { timeout: TIMEOUT }, async ([, of]) => {
  await holdForEach(of, invalidRequest, ({ status, text }) => expect(status, text).toBe(400))
})
