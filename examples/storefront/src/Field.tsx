/** A field of a form: its label, the control, and what is wrong with it. */
import type { ReactNode } from 'react'

/** What ties a control to its label and its problem. */
export interface Control {
  id: string
  className: string
  name: string
  'aria-invalid': boolean
  'aria-describedby': string
}

interface Props {
  label: string
  name: string
  problem: string | undefined
  children(control: Control): ReactNode
}

export function Field({ label, name, problem, children }: Props) {
  const problemId = `${name}-problem`
  return (
    <div className="field">
      <label htmlFor={name}>{label}</label>
      {children({
        id: name,
        className: 'control',
        name,
        'aria-invalid': problem !== undefined,
        'aria-describedby': problemId,
      })}
      <p className="problem" id={problemId}>
        {problem}
      </p>
    </div>
  )
}
