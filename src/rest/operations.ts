/** The operations of REST: the router's procedures, with where and how each is served. */
import type { OpenApiMeta } from 'trpc-to-openapi'
import type { z } from 'zod'
import type { AppRouter } from '../router.ts'
import type { RestMeta } from '../trpc/init.ts'

export interface Operation {
  /** The name of the procedure, which is the operationId too. */
  name: string
  method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'
  /** As in the OpenAPI document: `/pets/{petId}`. */
  path: string
  input: z.ZodType
  rest: RestMeta
}

/** Every procedure of the router that has a place on REST. */
export function operationsOf(router: AppRouter): Operation[] {
  return Object.entries(router._def.procedures).flatMap(([name, procedure]) => {
    // tRPC keeps both, but declares the meta as unknown and the inputs only on its internal type.
    const { meta, inputs } = procedure._def as unknown as {
      meta?: OpenApiMeta<{ rest?: RestMeta }>
      inputs: [z.ZodType]
    }
    if (!meta?.openapi || !meta.rest) return []
    const { method, path } = meta.openapi
    return [{ name, method, path, input: inputs[0], rest: meta.rest }]
  })
}

/** Whether calls of the operation carry a body. */
export const hasBody = ({ method }: Operation): boolean => method !== 'GET' && method !== 'DELETE'
