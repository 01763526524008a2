/** In place of animals where there are none: why, and where to go from here. */
import type { ReactNode } from 'react'
import { Portrait } from './Portrait.tsx'

export function Nothing({ children }: { children: ReactNode }) {
  return (
    <div className="nothing">
      <Portrait species="paw" />
      {children}
    </div>
  )
}
