/**
 * The operations of REST: each is made at the start, from a procedure and its `restMeta`. The surface,
 * the codecs, the document, `Allow` and CORS depend on nothing else. An incomplete description is an
 * error at the start.
 */
import type { AnyTRPCProcedure, AnyTRPCRouter } from '@trpc/server'
import type { z } from 'zod'
import { sentence } from '../../errors/problem.ts'
import { INVALID_HOST } from '../../http/request.ts'
import { makerOf } from '../../procedure/resolver.ts'
import { definitionOf } from '../invoke.ts'
import { type Codec, codecOf, object, shapesOf } from './codec.ts'
import { formOf, parametersOf } from './routes.ts'

export type Operation = ReturnType<typeof operationOf>

/**
 * Returns the operations of a router's procedures. `tags` has the description of each tag. Throws
 * TypeError for an incomplete or contradictory description, and for two operations at one path.
 */
export function operationsOf(router: AnyTRPCRouter, tags: Record<string, string>): Operation[] {
  const procedures = Object.entries<AnyTRPCProcedure>(router._def.procedures)
  const operations = procedures.map(([name, procedure]) => operationOf(name, procedure, tags))
  checkPaths(operations)
  return operations
}

/**
 * Checks that operations at one path have different methods, and the same names of parameters (OpenAPI
 * 3.1, Paths Object: templates that differ only in those are identical and invalid), and that
 * `creates` and `successor` are paths of operations.
 */
function checkPaths(operations: Operation[]): void {
  for (const [index, { name, method, path, creates, deprecated }] of operations.entries()) {
    for (const other of operations.slice(0, index)) {
      if (formOf(other.path) !== formOf(path)) continue
      const names = `${name} and ${other.name}`
      if (other.path !== path) {
        const paths = `${path} and ${other.path} are the same path`
        throw new TypeError(`${paths}: ${names} name its parameters differently`)
      }
      if (other.method === method) throw new TypeError(`${names} are both at ${method} ${path}`)
    }
    for (const [verb, target] of Object.entries({ creates, 'points to': deprecated?.successor })) {
      if (target && !operations.some((other) => formOf(other.path) === formOf(target)))
        throw new TypeError(`The procedure ${name} ${verb} ${target}, a path that no procedure has`)
    }
  }
}

/** Characters of a name, which is kept with each Idempotency-Key. */
const MAX_NAME = 64

type Need = (condition: unknown, what: string) => asserts condition

function operationOf(name: string, procedure: AnyTRPCProcedure, tags: Record<string, string>) {
  const { type, meta, inputs, output, resolver } = definitionOf(procedure)
  const need: Need = (condition, what) => {
    if (!condition) throw new TypeError(`The procedure ${name} ${what}`)
  }
  need(name.length <= MAX_NAME, `has a name of more than ${MAX_NAME} characters`)
  const rest = meta?.rest
  need(rest, 'needs .meta(restMeta({ … })), with its method and path')
  const { method, path, paged, creates, repeatable, deprecated, example, exampleInput } = rest
  const heading = tags[rest.tag]
  if (heading === undefined)
    throw new TypeError(`The tag ${rest.tag} of ${name} needs a description`)
  const [input] = inputs
  need(input && inputs.length === 1, 'needs exactly one .input(…)')
  need(output, 'needs an .output(…): a response has its fields and no others')
  const isQuery = method === 'GET'
  need(isQuery === (type === 'query'), `is a ${type}, which does not fit the method ${method}`)

  const inputCodec = codecOf(input, 'input', `The input of ${name}`)
  need(inputCodec.type === 'object', 'needs an object as its input')
  const codecs = new Map(inputCodec.fields)
  const [shape = {}] = shapesOf(input, 'input')
  const inPath = parametersOf(path).map((field): [string, Codec] => {
    const codec = codecs.get(field)
    need(codec, `has {${field}} in its path, which its input lacks`)
    need(codec.type !== 'list', `has {${field}} in its path, which is a list in its input`)
    need(
      codec.type !== 'nullable' && !mayBeUndefined(shape[field]),
      `has {${field}} in its path, which its input may omit or set to null`,
    )
    codecs.delete(field)
    return [field, codec]
  })
  const others = [...codecs]
  const hasBody = !isQuery && method !== 'DELETE' && others.length > 0
  const inQuery = hasBody ? [] : others
  for (const [field, codec] of inQuery) {
    need(
      (codec.type === 'list' ? codec.inner : codec)?.type !== 'nullable',
      `has ${field} in its query, which may be null: a URL cannot say null, so use optional()`,
    )
  }
  const bodyName = input.meta()?.id
  need(!hasBody || bodyName, 'needs an id for its input: the name of its schema')

  const outputCodec = codecOf(output, 'output', `The output of ${name}`)
  const hasOutput = outputCodec.type !== 'nothing'
  need(hasOutput || method === 'DELETE', 'must have an output')
  need(!hasOutput || method !== 'DELETE', 'is a DELETE: its output must be z.void()')
  const maker = makerOf(resolver)
  need(!paged === (maker !== 'paged'), 'must say `paged` and use paged(…), or neither')
  need(
    !paged || (codecs.has('limit') && codecs.has('cursor') && outputCodec.type === 'list'),
    'is paged: it needs `limit` and `cursor` in its input, and a list as its output',
  )
  const takesKey = creates !== undefined || repeatable === true
  need(
    takesKey === (maker === 'idempotentWrite'),
    'must say `creates` or `repeatable` and use idempotentWrite(…), or neither',
  )
  need(
    !isQuery || !maker || maker === 'paged',
    'is a query, which must not write: write(…) or idempotentWrite(…) must not make its resolver',
  )
  need(
    isQuery || (maker && maker !== 'paged'),
    'is a mutation: write(…) or idempotentWrite(…) must make its resolver, for one transaction',
  )
  need(
    !deprecated || parametersOf(deprecated.successor).length === 0,
    `has ${deprecated?.successor} as its successor: a path without parameters`,
  )
  need(
    !deprecated || deprecated.since < deprecated.sunset,
    'is deprecated: `since` and `sunset` must be dates in this order',
  )

  if (hasOutput) check(output, example, `The example of ${name}`)
  for (const field of parametersOf(creates ?? '')) {
    need(
      inPath.some(([known]) => known === field) || isAlwaysIn(output, outputCodec, field),
      `has {${field}} in what it creates: a field that is always in its output, or one of its path`,
    )
  }
  const body = object(others)
  need(!hasBody || exampleInput, 'needs an exampleInput: a body')
  need(hasBody || !exampleInput, 'has an exampleInput, but no body')
  const isOther = (field: string) => codecs.has(field)
  const given = Object.entries(exampleInput ?? {}).filter(([field]) => isOther(field))
  const bodyExample = exampleInput && Object.fromEntries(given)
  // The reader of an object returns an object.
  const sampleInput = bodyExample && (body.read(bodyExample) as object)
  if (sampleInput) check(input, sampleInput, `The example of the input of ${name}`, isOther)

  const readers = (of: [string, Codec][]) =>
    new Map(
      of.map(([field, { type, readText }]) => {
        if (readText) return [field, readText]
        throw new TypeError(`${field} of ${name} is of the type ${type}, which no URL can have`)
      }),
    )
  const toJson = (codec: Codec, value: unknown) => (codec.write ? codec.write(value) : value)
  const write = (value: unknown) => JSON.stringify(toJson(outputCodec, value))
  const status: 200 | 201 | 204 = creates === undefined ? (hasOutput ? 200 : 204) : 201
  return {
    ...rest,
    /** The name of the procedure, and the operationId in the document. */
    name,
    procedure,
    type,
    /** The readers of the input's fields in the path and the query, by name. */
    pathParameters: readers(inPath),
    queryParameters: readers(inQuery),
    /** Converts a JSON body; undefined if the operation has none. */
    readBody: hasBody ? body.read : undefined,
    /** The status of a success. */
    status,
    write,
    /** Whether the operation supports Idempotency-Key. */
    takesKey,
    input,
    /** The name of the body's schema in the document. */
    bodyName,
    /** The description of the operation's tag. */
    heading,
    /** An example of the message of 400, for the document. */
    badRequest: hasBody ? badBody(input, codecs) : badParameter(input, [...inPath, ...others]),
    /** The examples for JSON.stringify, with all digits of their integers. */
    example: hasOutput ? toJson(outputCodec, output.parse(example)) : undefined,
    exampleInput: bodyExample && (toJson(body, bodyExample) as object),
    /** The example of the body, as `readBody` returns it. */
    sampleInput,
  }
}

type Selects = (field: string) => boolean

function check(schema: z.ZodType, value: unknown, what: string, counts: Selects = () => true) {
  const message = errorsOf(schema, value, counts)
  if (message) throw new TypeError(`${what} does not fit its schema: ${message}`)
}

/** Returns the errors of a value in the fields that `counts` selects, as one sentence; undefined without any. */
function errorsOf(schema: z.ZodType, value: unknown, counts: Selects): string | undefined {
  const issues = schema.safeParse(value).error?.issues.filter(({ path }) => counts(String(path[0])))
  return issues?.length ? sentence({ issues }) : undefined
}

/** Returns whether every output has this field, in a type that a path can have. */
function isAlwaysIn(output: z.ZodType, { fields }: Codec, field: string): boolean {
  const codec = new Map(fields).get(field)
  if (!codec?.readText || codec.type === 'list') return false
  return shapesOf(output, 'output').every((shape) => !mayBeUndefined(shape[field]))
}

/** Returns whether an object may lack a field with this schema, or without one. */
function mayBeUndefined(schema: z.ZodType | undefined): boolean {
  const { success, data } = schema?.safeParse(undefined) ?? { success: true }
  return success && data === undefined
}

/** Returns the message for an empty body or, if that is valid, for a body whose first field is a list. */
function badBody(input: z.ZodType, fields: ReadonlyMap<string, Codec>): string {
  const isBody = (field: string) => fields.has(field)
  const [first = ''] = fields.keys()
  return errorsOf(input, {}, isBody) ?? errorsOf(input, { [first]: [] }, isBody) ?? NOT_AN_OBJECT
}

/** The message of 400 for a body that is JSON, but no object. */
export const NOT_AN_OBJECT = 'The body must be a JSON object'

/** Returns the message for the first parameter that rejects `x`; without one, for an invalid Host. */
function badParameter(input: z.ZodType, fields: [string, Codec][]): string {
  const messages = fields.map(([field]) =>
    errorsOf(input, { [field]: 'x' }, (other) => other === field),
  )
  return messages.find((message) => message !== undefined) ?? INVALID_HOST
}
