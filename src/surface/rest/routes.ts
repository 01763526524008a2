/**
 * The routes of REST: each is made at the start, from an operation and its `restMeta`. The surface,
 * the document, `Allow` and CORS depend on nothing else.
 */
import { z } from 'zod'
import { emptyHeaders, headersOf, jsonHeaders } from '../../http/headers.ts'
import { hasInput } from '../../procedure/inputs.ts'
import type { RestMeta } from '../../procedure/meta.ts'
import { check, type Operation } from '../../procedure/operation.ts'
import { readerOf } from './readers.ts'

/** A part of a path template: a text, or a parameter with this name. */
export type Part = { text: string; name?: undefined } | { text?: undefined; name: string }

/** A field of the input in the path or the query. */
interface Parameter {
  name: string
  /** Converts its text, of a list that of an item: see the readers of readers.ts. */
  readText(text: string): unknown
  /** Whether a query may have several, which are a list. */
  isList: boolean
  /** Undefined where the field has its description below `optional()`. */
  description: string | undefined
}

/** How REST serves an operation. */
export interface Route extends RestMeta {
  operation: Operation
  /** The name of the operation in the document: `petsList` of the procedure `pets.list`. */
  operationId: string
  /** The whole path template, such as `/v1/pets/{petId}`. */
  template: string
  /** The parts of the path, after the public URL of `/v1`. */
  pathParts: Part[]
  /** The parts of `Location`, after the same URL; undefined unless the operation creates a resource. */
  locationParts: Part[] | undefined
  /** The status of a success. */
  status: 200 | 201 | 204
  /** Headers of errors: each name, then its value. */
  headers: readonly string[]
  /** Headers of successes, beside `Location` and `Link`. */
  headersOfSuccess: readonly string[]
  /** Whether the procedure has an input. */
  takesInput: boolean
  pathParameters: Parameter[]
  queryParameters: Parameter[]
  readsBody: boolean
  /** Reads the value of a JSON body: `read` of the reader of the input, in readers.ts. */
  readValue(value: unknown): unknown
  /** The public URL of `/v1`, for links. */
  baseUrl: string
}

const PREFIX = '/v1'

/** A parameter of a path template, such as `/pets/{petId}`. */
const PARAMETER = /\{(.+?)\}/

/** Returns the parts of a path template: `/pets/{petId}` has the text `/pets/` and the name `petId`. */
export function partsOf(template: string): Part[] {
  // A split by a pattern with a group has a text, a group, a text, and so on.
  const parts = template
    .split(PARAMETER)
    .map((part, at) => (at % 2 ? { name: part } : { text: part }))
  return parts.filter(({ text }) => text !== '') as Part[]
}

const namesIn = (parts: Part[]) => parts.flatMap(({ name }) => name ?? [])

/** Returns the path template without the names of its parameters: two that are equal match the same paths. */
const placeOf = (path: string) => path.replaceAll(new RegExp(PARAMETER, 'g'), '{}')

/**
 * Returns the routes of the operations that REST has; `baseUrl` is the public URL of `/v1`, for links. Throws TypeError for
 * a description that contradicts its procedure.
 */
export function routesOf(operations: Operation[], baseUrl: string): Route[] {
  const routes = operations.flatMap((operation) =>
    operation.rest ? routeOf(operation, operation.rest, baseUrl) : [],
  )
  for (const [at, route] of routes.entries()) checkBesideOthers(route, routes.slice(0, at), routes)
  return routes
}

/** A name of generated clients, which may have no dots. */
export const operationIdOf = (name: string) =>
  name.replaceAll(/\.(.)/g, (_, letter: string) => letter.toUpperCase())

/** Throws TypeError if a route contradicts one before it, or names a path that no route has. */
function checkBesideOthers(route: Route, before: Route[], all: Route[]): void {
  const { operation, operationId, path, method, creates, deprecated, after } = route
  const isPath = (other: string) => all.some(({ path }) => placeOf(path) === placeOf(other))
  const wrong = (what: string) => new TypeError(`The procedure ${operation.name} ${what}`)
  if (creates && !isPath(creates)) throw wrong(`creates ${creates}, the path of no procedure`)
  if (deprecated && !isPath(deprecated.successor)) {
    throw wrong(`has the successor ${deprecated.successor}, the path of no procedure`)
  }
  if (after && !all.some(({ operation }) => operation.name === after)) {
    throw wrong(`comes after ${after}, which is no procedure`)
  }
  for (const other of before) {
    if (other.operationId === operationId) {
      throw wrong(`has the operationId ${operationId}, which ${other.operation.name} has, too`)
    }
    // Two paths whose parameters have different names match the same requests.
    if (placeOf(other.path) !== placeOf(path)) continue
    if (other.path === path && other.method !== method) continue
    const beside = `${other.operation.name}, ${other.method} ${other.path}`
    throw wrong(`serves ${method} ${path}, which the procedure ${beside} excludes`)
  }
}

/** The reader of a procedure without an input. */
const NOTHING: ReturnType<typeof readerOf> = { read: () => undefined, fields: {} }

function routeOf(operation: Operation, rest: RestMeta, baseUrl: string): Route {
  const { name, input, output, isPaged } = operation
  const { method, path, creates, example, exampleInput } = rest
  function need(condition: unknown, what: string): asserts condition {
    if (!condition) throw new TypeError(`The procedure ${name} ${what}`)
  }
  need(output, 'has restMeta(…), so it needs .output(…)')
  const takesInput = hasInput(input)
  const { fields = {}, read } = takesInput ? readerOf(input, `The input of ${name}`) : NOTHING
  const pathParts = partsOf(path)
  const inPath = namesIn(pathParts)
  const others = Object.keys(fields).filter((field) => !inPath.includes(field))
  const locationParts = creates === undefined ? undefined : partsOf(creates)
  const inOutput = output instanceof z.ZodObject ? output.shape : {}
  for (const field of namesIn(locationParts ?? [])) {
    const isKnown = field in inOutput || inPath.includes(field)
    need(isKnown, `creates {${field}}, which its output and its path lack`)
  }
  need(!isPaged || 'cursor' in fields, 'returns a page, so it needs the inputs of pagingInputs(…)')
  const readsBody = method !== 'GET' && method !== 'DELETE' && others.length > 0
  if (readsBody) {
    need(
      input.meta()?.id && exampleInput,
      'reads a body, so its input needs an id and an exampleInput; of several inputs, the id is inputId',
    )
    const issues = check(input, exampleInput, name).error?.issues ?? []
    const isOfBody = issues.every(({ path: [field] }) => inPath.includes(String(field)))
    need(isOfBody, 'has an exampleInput that its input rejects')
  }
  const parametersOf = (names: string[]) =>
    names.map((field): Parameter => {
      const { readText, schema, isList = false } = fields[field] ?? {}
      need(readText && schema, `needs {${field}} in its input, in a type that a URL can have`)
      need(
        !(isList && inPath.includes(field)),
        `has {${field}} in its path, which cannot be a list`,
      )
      const isOptional = inPath.includes(field) && z.safeParse(schema, undefined).success
      need(!isOptional, `has {${field}} in its path, so the field cannot be optional`)
      return {
        name: field,
        readText,
        isList,
        description: z.globalRegistry.get(schema)?.description,
      }
    })
  const status = creates !== undefined ? 201 : output.def.type === 'void' ? 204 : 200
  need(
    status === 204 || check(output, example, name).success,
    'has an example that its output rejects',
  )
  const deprecation = deprecationOf(rest, baseUrl)
  return {
    ...rest,
    operation,
    operationId: operationIdOf(name),
    template: PREFIX + path,
    pathParts,
    locationParts,
    status,
    headers: [...jsonHeaders, ...deprecation],
    headersOfSuccess: [...(status === 204 ? emptyHeaders : jsonHeaders), ...deprecation],
    takesInput,
    pathParameters: parametersOf(inPath),
    queryParameters: parametersOf(readsBody ? [] : others),
    readsBody,
    readValue: read,
    baseUrl,
  }
}

/** Returns the headers of RFC 9745, RFC 8594 and RFC 5829; none unless the operation is deprecated. */
function deprecationOf({ deprecated }: RestMeta, baseUrl: string): readonly string[] {
  if (!deprecated) return []
  const { since, sunset, successor } = deprecated
  return headersOf({
    Deprecation: `@${Math.floor(since.getTime() / 1000)}`,
    Sunset: sunset.toUTCString(),
    Link: `<${baseUrl}${successor}>; rel="successor-version"`,
  })
}
