/**
 * The operations of REST: each is made at the start, from a procedure and its `restMeta`. The surface,
 * the codec, the document, `Allow` and CORS depend on nothing else. An incomplete description is an
 * error at the start.
 */
import type { AnyTRPCProcedure, AnyTRPCRouter } from '@trpc/server'
import type { z } from 'zod'
import { sentence } from '../../errors/problem.ts'
import { INVALID_HOST } from '../../http/request.ts'
import { isIdempotentWrite } from '../../procedure/idempotent-write.ts'
import { cursorOrderOf, pageOrderOf } from '../../procedure/paging.ts'
import type { RestMeta } from '../../procedure/rest-meta.ts'
import { isWrite } from '../../procedure/write.ts'
import { jsonReader, jsonWriter, type Kind, kindOf, textReader } from './codec.ts'
import { formOf, parametersOf, segmentsOf } from './routes.ts'

export type Operation = ReturnType<typeof operationOf>

/** The parts of a procedure that tRPC declares on its internal types only. */
interface Definition {
  meta?: { rest?: RestMeta }
  inputs: z.ZodType[]
  output?: z.ZodType
  resolver: object
}

/**
 * Returns the operations of a router's procedures. `tags` has the description of each tag. Throws
 * TypeError for an incomplete or contradictory description, and for two operations at one path.
 */
export function operationsOf(router: AnyTRPCRouter, tags: Record<string, string>): Operation[] {
  const procedures: Record<string, AnyTRPCProcedure> = router._def.procedures
  const operations = Object.entries(procedures).map(([name, procedure]) =>
    operationOf(name, procedure, tags),
  )
  checkPaths(operations)
  return operations
}

/**
 * Checks that operations at one path have different methods, and the same names of parameters (OpenAPI
 * 3.1, Paths Object: templates that differ only in those are identical and invalid), and that
 * `creates` is the path of an operation.
 */
function checkPaths(operations: Operation[]): void {
  const forms = Map.groupBy(operations, ({ path }) => formOf(path))
  for (const [form, [first, ...others]] of forms) {
    const different = others.find(({ path }) => path !== first?.path)
    if (different) {
      const names = `${different.name} and ${first?.name} name its parameters differently`
      throw new TypeError(`${different.path} and ${first?.path} are the same path: ${names}`)
    }
    for (const [method, [one, other]] of Map.groupBy(
      forms.get(form) ?? [],
      ({ method }) => method,
    )) {
      if (other)
        throw new TypeError(`${other.name} and ${one?.name} are both at ${method} ${one?.path}`)
    }
  }
  for (const { name, creates } of operations) {
    if (creates === undefined || forms.has(formOf(creates))) continue
    throw new TypeError(`The procedure ${name} creates ${creates}, a path that no procedure has`)
  }
}

function operationOf(name: string, procedure: AnyTRPCProcedure, tags: Record<string, string>) {
  const { meta, inputs, output, resolver } = procedure._def as unknown as Definition
  const rest = meta?.rest
  const wrong = (what: string) => new TypeError(`The procedure ${name} ${what}`)
  if (!rest) throw wrong('needs .meta(restMeta({ … })), with its method and path')
  const heading = tags[rest.tag]
  if (heading === undefined) throw new TypeError(`The tag ${rest.tag} needs a description`)
  const [input] = inputs
  if (!input || inputs.length > 1) throw wrong('needs exactly one .input(…)')
  if (!output) throw wrong('needs an .output(…): a response has its fields and no others')
  const isQuery = rest.method === 'GET'
  if (isQuery !== (procedure._def.type === 'query')) {
    throw wrong(`is a ${procedure._def.type}, which does not fit the method ${rest.method}`)
  }

  const inputKind = kindOf(input, 'input', `The input of ${name}`)
  if (inputKind.type !== 'object') throw wrong('needs an object as its input')
  const fields = new Map(inputKind.fields)
  const inPath = parametersOf(segmentsOf(rest.path))
  const unknown = inPath.find((field) => !fields.has(field))
  if (unknown) throw wrong(`has {${unknown}} in its path, which its input lacks`)
  const others = inputKind.fields.filter(([field]) => !inPath.includes(field))
  const hasBody = !isQuery && rest.method !== 'DELETE' && others.length > 0
  const bodyName = input.meta()?.id
  if (hasBody && !bodyName) throw wrong('needs an id for its input: the name of its schema')

  const outputKind = kindOf(output, 'output', `The output of ${name}`)
  const hasOutput = outputKind.type !== 'nothing'
  if (hasOutput === (rest.method === 'DELETE')) {
    throw wrong(hasOutput ? 'is a DELETE: its output must be z.void()' : 'must have an output')
  }
  const isPaged = 'paged' in rest
  const order = pageOrderOf(resolver)
  if (isPaged !== (order !== undefined))
    throw wrong('must say `paged` and use paged(…), or neither')
  if (isPaged && !(fields.has('limit') && fields.has('cursor') && outputKind.type === 'list')) {
    throw wrong('is paged: it needs `limit` and `cursor` in its input, and a list as its output')
  }
  if (order !== cursorOrderOf(input)) {
    throw wrong('must have the same order in paged(…) and in the pagingInputs(…) of its input')
  }
  const creates = 'creates' in rest ? rest.creates : undefined
  const takesKey = creates !== undefined || ('repeatable' in rest && rest.repeatable === true)
  if (takesKey !== isIdempotentWrite(resolver)) {
    throw wrong('must say `creates` or `repeatable` and use idempotentWrite(…), or neither')
  }
  if (isQuery === isWrite(resolver)) {
    throw wrong(
      isQuery
        ? 'is a query, which must not write: write(…) or idempotentWrite(…) must not make its resolver'
        : 'is a mutation: write(…) or idempotentWrite(…) must make its resolver, for one transaction',
    )
  }

  if (rest.deprecated && parametersOf(segmentsOf(rest.deprecated.successor)).length > 0) {
    throw wrong(`has ${rest.deprecated.successor} as its successor: a path without parameters`)
  }

  const write = jsonWriter(outputKind)
  const exampleOutput = 'example' in rest ? rest.example : undefined
  if (hasOutput) check(output, exampleOutput, `The example of ${name}`)
  for (const field of creates === undefined ? [] : parametersOf(segmentsOf(creates))) {
    if (inPath.includes(field) || isAlwaysIn(output, outputKind, exampleOutput, field)) continue
    throw wrong(
      `has {${field}} in what it creates: a field that is always in its output, or one of its path`,
    )
  }
  const read = jsonReader({ type: 'object', fields: others })
  if (hasBody !== 'exampleInput' in rest) {
    throw wrong(hasBody ? 'needs an exampleInput: a body' : 'has an exampleInput, but no body')
  }
  if ('exampleInput' in rest) {
    const body = read(rest.exampleInput) as object
    check(input, body, `The example of the input of ${name}`, inPath)
  }

  const readers = (of: [string, Kind][]) =>
    new Map(of.map(([field, kind]) => [field, textReader(kind, `${field} of ${name}`)]))
  const status: 200 | 201 | 204 = creates === undefined ? (hasOutput ? 200 : 204) : 201
  return {
    /** The name of the procedure, and the operationId in the document. */
    name,
    procedure,
    method: rest.method,
    /** A path template, such as `/pets/{petId}`. */
    path: rest.path,
    /** The readers of the input's fields in the path and the query, by name. */
    pathParameters: readers(inPath.map((field) => [field, fields.get(field) as Kind])),
    queryParameters: readers(hasBody ? [] : others),
    /** Converts a JSON body; undefined if the operation has none. */
    readBody: hasBody ? read : undefined,
    /** The status of a success. */
    status,
    write,
    paged: isPaged,
    /** The path template of the created resource. */
    creates,
    /** Whether the operation supports Idempotency-Key. */
    takesKey,
    deprecated: rest.deprecated,
    input,
    /** The name of the body's schema in the document. */
    bodyName,
    meta: rest,
    /** The description of the operation's tag. */
    heading,
    /** An example of the message of 400, for the document. */
    badRequest: hasBody
      ? badBody(input, others, inPath)
      : badParameter(input, [...inPath, ...others.map(([field]) => field)]),
    /** The example of the output in JSON. */
    example: hasOutput ? (JSON.parse(write(output.parse(exampleOutput))) as unknown) : undefined,
  }
}

function check(schema: z.ZodType, value: unknown, what: string, except?: string[]): void {
  const message = errorsOf(schema, value, (field) => !except?.includes(field))
  if (message) throw new TypeError(`${what} does not fit its schema: ${message}`)
}

/** Returns the errors of a value in the fields that `counts` selects, as one sentence; undefined without any. */
function errorsOf(
  schema: z.ZodType,
  value: unknown,
  counts: (field: string) => boolean,
): string | undefined {
  const issues = schema.safeParse(value).error?.issues.filter(({ path }) => counts(String(path[0])))
  return issues?.length ? sentence({ issues }) : undefined
}

/** Returns whether every output has this field, in a kind that a path can have. */
function isAlwaysIn(output: z.ZodType, kind: Kind, example: unknown, field: string): boolean {
  const type = kind.type === 'object' && new Map(kind.fields).get(field)?.type
  if (!type || ['nothing', 'list', 'object', 'nullable'].includes(type)) return false
  const { success, data } = output.safeParse({ ...(example as object), [field]: undefined })
  return !success || (data as Record<string, unknown>)[field] !== undefined
}

/** Returns the message for an empty body or, if that is valid, for a body whose first field is a list. */
function badBody(input: z.ZodType, others: [string, Kind][], inPath: string[]): string {
  const isBody = (field: string) => !inPath.includes(field)
  const [first = ''] = others[0] ?? []
  return errorsOf(input, {}, isBody) ?? errorsOf(input, { [first]: [] }, isBody) ?? NOT_AN_OBJECT
}

/** The message of 400 for a body that is JSON, but no object. */
export const NOT_AN_OBJECT = 'The body must be a JSON object'

/** Returns the message for the first parameter that rejects `x`; without one, for an invalid Host. */
function badParameter(input: z.ZodType, fields: string[]): string {
  const messages = fields.map((field) =>
    errorsOf(input, { [field]: 'x' }, (other) => other === field),
  )
  return messages.find((message) => message !== undefined) ?? INVALID_HOST
}
