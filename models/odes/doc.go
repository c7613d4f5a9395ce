// Package odes has models of differential equations, with data: an epidemic ([SIR]) and the way of a drug through a
// body ([Absorption]). Package ode solves the equations.
package odes
