/** What the schemas of all fields share. */

/** The texts of a field in the document; the examples are in JSON. */
export interface Documentation<Example = string> {
  description?: string
  examples?: Example[]
}

/** The texts of an input, which needs a description. */
export type InputDocumentation<Example = string> = Documentation<Example> & { description: string }

/** Returns the error of a field that is missing, or that breaks a rule. */
export const required =
  (rule: string) =>
  ({ input }: { input?: unknown }): string =>
    input === undefined ? 'is required' : rule
