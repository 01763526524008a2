/** The router as its clients see it: inputs, outputs and errors, nothing of how they are served. */
import type {
  TRPCBuiltRouter,
  TRPCDefaultErrorShape,
  TRPCMutationProcedure,
  TRPCQueryProcedure,
  TRPCRouterRecord,
} from '@trpc/server'
import { appRouter } from './router.ts'

interface Router<ErrorShape, Procedures> {
  _def: { _config: { $types: { errorShape: ErrorShape } }; procedures: Procedures }
}

// The declarations of a client must lead neither to the context and the meta nor to the libraries
// that these import. A name would; but what is inferred for a value, the compiler spells out.
function forClients<ErrorShape extends TRPCDefaultErrorShape, Procedures extends TRPCRouterRecord>(
  router: Router<ErrorShape, Procedures>,
) {
  return router as unknown as TRPCBuiltRouter<
    { ctx: object; meta: object; errorShape: ErrorShape; transformer: true },
    {
      [Name in keyof Procedures]: Procedures[Name] extends TRPCQueryProcedure<infer Built>
        ? TRPCQueryProcedure<{ input: Built['input']; output: Built['output']; meta: object }>
        : Procedures[Name] extends TRPCMutationProcedure<infer Built>
          ? TRPCMutationProcedure<{ input: Built['input']; output: Built['output']; meta: object }>
          : never
    }
  >
}

/** The router, for its type. */
export const clientRouter = forClients(appRouter)

export type AppRouter = typeof clientRouter
